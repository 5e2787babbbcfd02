"""A client of Portcullis in Python, to be read: Sources/client/docs/machine.md as a program.

It signs an app's requests with a key that a device vouches for, and obeys what the gateway answers. Read `Request.send`
first, and what it calls. The other parts are in key.py, challenges.py and routes.py. words.py has what all of them
share, stack.py what every app has. The tables that comments name are in machine.md; what is signed is in wire.md.
"""
import collections, contextlib, hmac, json, math, os, random, re, threading, time, urllib.parse
from challenges import Challenges, Session
from key import Key
from routes import Routes
from stack import authority, exchange, parse, start
from words import USUAL, DeviceError, Limits, MayHaveRun, TokenNeeded, Unfit, base64_of, digest_of, verdict

class Request:
    """A call of the app: how often it was sent, how much longer it may wait."""
    def __init__(self, client, method, target, fields=(), content=None, timeout=60, route=None,
                 needs_proof=False):
        self.client, self.method, self.target, self.content, self.timeout = client, method, target, content, timeout
        self.fields, self.route, self.left, self.key_id = list(fields), route, min(Limits.proof_wait, timeout), None
        names = [name.lower() for name, _ in self.fields]
        if "host" not in names: self.fields.insert(0, ("Host", client.host))
        self.origin, self.redirects = client.gateway, 0
        if (content is not None or method in ("POST", "PUT", "PATCH")) and "content-length" not in names:
            self.fields.append(("Content-Length", str(len(content or b""))))
        self.sent = collections.Counter()  # by the proof's kind, each with its limit
        self.allowed = {"counted": Limits.opening_tries if route else Limits.maximum_attempts, "held": Limits.held_max,
                        "asked": max(2, Limits.maximum_attempts), "enrolling": Limits.unfinished_max,
                        "without-challenge": Limits.maximum_attempts}
        self.needs_proof, self.unfit = needs_proof, None
        self.unsigned = 0  # times that the device has not signed it
        self.was_refused = self.was_mended = self.asks = self.replaced_key = self.avoids_session = False

    def send(self):
        """The answer that is the app's. Raises Unfit, MayHaveRun, TokenNeeded, or OSError where no answer came."""
        answer = None
        while self.sent["counted"] < self.allowed["counted"]:
            proof = self.prove()
            self.sent[proof.kind] += 1
            if self.sent[proof.kind] > self.allowed[proof.kind]: break
            answer = self.exchange(proof)
            answer.unfit = self.unfit
            if self.follows(answer): self.sent[proof.kind] -= 1
            elif self.origin != self.client.gateway: break
            elif verdict(answer)[0] is None:
                self.client.advise(self, proof, answer)
                break
            elif not self.goes_again(proof, answer): break
        return answer

    def wait(self, limit, work, least=0):
        """What `work` gets in this time, or in what all waits of the request have left together."""
        began = time.monotonic()
        try: return work(max(min(limit, self.left), least))
        except OSError: return None  # it took too long, or the record can't be written
        finally: self.left -= time.monotonic() - began

    def exchange(self, proof):
        client = self.client
        try:
            answer = exchange(self.origin, self.method, self.target, self.fields + proof.fields, self.content,
                              self.timeout, head_came=lambda: client.turns.give(self))
        finally:
            client.turns.give(self)
            if proof.session: client.session.answered(proof)
        if self.origin == client.gateway: client.challenges.keep([answer.fields.get("app-attest-challenge")])
        return answer

    def follows(self, answer):
        """After a redirect (RFC 9110 §15.4) the request is the one for its target. Other origins get no proof."""
        place = answer.fields.get("location")
        if answer.status not in (301, 302, 303, 307, 308) or not place or self.redirects >= Limits.redirects: return False
        target = urllib.parse.urlsplit(urllib.parse.urljoin(f"{self.origin.geturl()}{self.target}", place))
        if target.scheme not in ("http", "https"): return False
        if answer.status == 303 and self.method != "HEAD" or answer.status < 303 and self.method == "POST":
            self.method, self.content = "GET", None
        private = ("authorization", "cookie") if authority(target) != authority(self.origin) else ()
        dropped = (*private, "host", *(("content-length", "content-type") if self.content is None else ()))
        self.fields = [pair for pair in self.fields if pair[0].lower() not in dropped]
        self.fields.insert(0, ("Host", authority(target)))
        self.origin = urllib.parse.urlsplit(f"{target.scheme}://{target.netloc}")
        self.target = (target.path or "/") + (f"?{target.query}" if target.query else "")
        self.redirects += 1
        return True

    def prove(self):
        """Waits for what a proof takes. Without all of it, the request goes without a proof."""
        client, route = self.client, self.route or self.client.routes.find(self)
        if self.origin != client.gateway: return Proof(None)
        if not route or self.asks: return Proof(route, "asked")
        proof, hastes = Proof(route), route["observes"] and not self.was_refused
        if not route["sign"]: return proof
        try: values = self.signed_values(route)
        except Unfit as error:
            if self.needs_proof: raise
            self.unfit = str(error)
            return proof
        self.key_id = self.wait(0 if hastes else Limits.enrolment_wait, client.key.wait)
        if not self.key_id:
            record = client.key.file.read()
            state = client.key.state(record)
            proof.kind = "counted" if state == "unsupported" else "held" if state == "held" else "enrolling"
            if state == "unsupported" or record.get("device_failures", 0) >= 2: proof.add("unsupported", "1")
            return proof
        if "session" in route["accept"] and client.has_sessions and not self.avoids_session:
            proof.session, proof.number = self.wait(0 if hastes else Limits.session_wait,
                                                    lambda seconds: client.session.take(self.key_id, seconds))
        if proof.session: proof.sign_in_session(self.client_data(route, values, str(proof.number)), self.key_id)
        else:
            def take(seconds): return client.challenges.take(seconds, hastes)
            challenge = member(self.content, route["pointer"]) if route["pointer"] is not None else None
            ends = math.inf  # where the content or no challenge is signed
            if not challenge and ("challenge" in " ".join(route["sign"]) or route["sign"] == ["content"]):
                challenge, ends = self.wait(Limits.challenge_wait, take) or (None, 0)
                if not challenge:
                    proof.kind = "without-challenge"
                    return proof
            client.turns.take(self, route["strict"] or client.now() < route.get("strict_until", 0))
            if client.now() >= ends:  # while others had their turn
                challenge, _ = self.wait(Limits.challenge_wait, take) or (challenge, ends)
            data = self.client_data(route, values, challenge or "-")
            signing = start(client.key.sign, self.key_id, data)
            assertion = self.wait(Limits.assertion_wait, signing.result, Limits.least_for_device)
            if not assertion:
                self.unsigned += 1
                is_lost = client.key.file.read().get("id") != self.key_id
                if is_lost and self.unsigned < Limits.signing_tries: return self.prove()
                return proof.add("unsupported", "1")
            if challenge and route["pointer"] is None: proof.add("challenge", challenge)
            proof.add("key_id", self.key_id).add("assertion", assertion)
        proof.is_made = True
        if self.content and "body" in route["sign"]: proof.fields.append(("Content-Digest", digest_of(self.content)))
        if route["device"]:
            with contextlib.suppress(DeviceError):
                making = start(client.device.token)
                proof.token = self.wait(Limits.device_token_wait, making.result, Limits.least_for_device)
            if proof.token: proof.fields.append(("App-Attest-Device-Token", proof.token))
        return proof

    def signed_values(self, route):
        values = {}
        for name in route["headers"]:
            found = [value.strip(" \t") for known, value in self.fields if known.lower() == name]
            if len(found) > 1: raise Unfit(f"the signed field {name} is there twice")
            if found and not re.fullmatch("[\t -~]*", found[0]): raise Unfit(f"the signed field {name} is not ASCII")
            values[name] = found[0] if found else None
        return values

    def client_data(self, route, values, line5):
        sign, content = route["sign"], self.content or b""
        if sign == ["challenge-text"]: return line5.encode()
        if sign == ["content"]: return content
        lines = ["portcullis-request-v1", self.method if "method" in sign else "-",
                 self.target if "target" in sign else "-", digest_of(content) if "body" in sign else "-", line5,
                 *(name if value is None else f"{name}: {value}" for name, value in values.items())]
        return "".join(line + "\n" for line in lines).encode()

    def may_run_again(self):
        return bool(self.route) or self.method in ("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE") or \
            any(name.lower() == "idempotency-key" and value.strip() for name, value in self.fields)

    def goes_again(self, proof, answer):
        """The table of "A request"."""
        client, (reason, step, says), self.was_refused = self.client, verdict(answer), True
        moved = proof.is_made and reason in ("assertion-missing", "challenge-missing")
        route = self.route or client.routes.learn(self, says, moved=moved)
        if proof.is_made and reason in ("counter-replayed", "challenge-spent", "session-replayed"):
            if reason == "counter-replayed" and not self.route:
                client.routes.change(self, strict_until=client.now() + Limits.strict_time)
            if not self.may_run_again(): raise MayHaveRun(answer)
        if step == "get-token": raise TokenNeeded(answer, says.get("tokens", "").split())
        if reason == "signature-mismatch" and proof.is_made:
            first, self.was_mended, self.asks = not self.was_mended, True, "sign" not in says
            return first and (self.asks or any(route[part] != proof.route[part] for part in ("sign", "headers")))
        if reason == "device-token-missing" and not proof.token:
            client.routes.change(self, device=True)
            return True
        if reason == "device-token-used": return True
        if reason == "assertion-malformed" and proof.session:
            client.session.refused(self, proof, reason)
            return True
        if step == "enrol" and proof.is_made:
            client.key.lost(self.key_id)
            first, self.replaced_key = not self.replaced_key, True
            return first
        if step == "retry-later":
            seconds = answer.retry_after(client.now())
            if seconds is None or seconds > min(Limits.retry_wait, self.left): return False
            self.wait(seconds + random.random(), time.sleep)
            return True
        if step != "sign-again": return False
        if reason in ("challenge-unknown", "challenge-expired"): client.challenges.forget()
        if proof.session: client.session.refused(self, proof, reason)
        if proof.is_made: return True
        if proof.kind == "asked":
            self.asks = False
            return bool(route)
        if proof.kind == "enrolling": return self.left > 0
        if proof.kind == "without-challenge": return "app-attest-challenge" in answer.fields
        if proof.kind == "counted": return False
        ends = client.key.file.read().get("held", 0) - client.now()
        if ends > min(Limits.enrolment_wait, self.left): return False
        self.wait(ends, time.sleep)
        return True

class Proof:
    """What a request carries when it is sent once. Without a proof, `kind` says why."""
    def __init__(self, route, kind="counted"):
        self.route, self.kind, self.fields, self.is_made = route, kind, [], False
        self.session = self.number = self.token = None

    def add(self, name, value):
        self.fields.append((self.route["fields"].get(name, USUAL[name]), value))
        return self

    def sign_in_session(self, data, key_id):
        made = base64_of(hmac.digest(self.session["secret"], data, "sha256"))
        self.fields += [("App-Attest-Session", self.session["session"]), ("App-Attest-Sequence", str(self.number)),
                        ("App-Attest-Signature", made)]
        if self.session.get("accepts_key_id"): self.fields.append((USUAL["key_id"], key_id))

def member(content, pointer):
    """The text at this place of the content (RFC 6901)."""
    with contextlib.suppress(ValueError, KeyError, IndexError, TypeError):
        found = json.loads(content)
        for step in pointer.split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            found = found[int(step)] if isinstance(found, list) else found[step]
        return found

class Turns:
    """How far assertions of the key may overtake each other: 64, and not at all after one for a strict counter."""
    def __init__(self): self.changed, self.number, self.open = threading.Condition(), 0, {}

    def take(self, request, is_strict):
        with self.changed:
            until = time.monotonic() + Limits.strict_wait
            while (left := min(until, self.ends()) - time.monotonic()) > 0: self.changed.wait(left)
            self.number += 1
            self.open[request] = self.number + (1 if is_strict else 64), time.monotonic() + Limits.strict_turn

    def ends(self):
        """Until when the next assertion waits. `open` has from which number on a request holds the others, and the end."""
        return max((end for first, end in self.open.values() if self.number + 1 >= first), default=0)

    def give(self, request):
        with self.changed:
            self.open.pop(request, None)
            self.changed.notify_all()

class Client:
    """What an app calls."""
    def __init__(self, gateway, device, folder, plan=False, sessions=True, context=None, now=time.time):
        self.gateway, self.device, self.context, self.now = urllib.parse.urlsplit(gateway), device, context, now
        self.host, self.endpoints = authority(self.gateway), "/.well-known/app-attest"
        is_safe = self.gateway.scheme == "https" or self.gateway.hostname in ("127.0.0.1", "::1", "localhost")
        os.makedirs(folder, exist_ok=True)
        self.has_plan, self.has_sessions = plan and is_safe, sessions and is_safe
        self.key, self.routes = Key(self, folder + "/key"), Routes(self, folder + "/routes")
        self.challenges, self.session, self.turns = Challenges(self), Session(self), Turns()

    def request(self, method, target, **more): return Request(self, method, target, **more)

    def send(self, method, target, fields=(), content=None, timeout=60, needs_proof=False):
        """The answer. Its `unfit` says why the request could not be signed; then it went without a proof."""
        return self.request(method, target, fields=fields, content=content, timeout=timeout, needs_proof=needs_proof).send()

    def prewarm(self):
        if self.has_plan: self.routes.fetching.start()
        start(self.key.wait, 0)
        start(self.challenges.prepare)

    def reset(self, context=None):
        """Forgets the key, unless the day allows no other. The next one is bound to this context."""
        self.context, self.challenges.kept, self.session.kept = context, [], None
        self.key.reset()

    def sign_out(self): self.key.sign_out()

    def call(self, path, document=None, method="POST", fields=()):
        """The answer of an endpoint. None where there is none."""
        content = json.dumps(document).encode() if document is not None else None
        fields = [("Host", self.host), *fields]
        if content: fields += [("Content-Type", "application/json"), ("Content-Length", str(len(content)))]
        with contextlib.suppress(OSError):
            return exchange(self.gateway, method, self.endpoints + path, fields, content, Limits.idle_time,
                            Limits.call_time)

    def advise(self, request, proof, answer):
        """Does in the background what `App-Attest-Next` of a response says."""
        words = parse(answer.fields.get("app-attest-next", ""))
        if not words or words[0][0] not in ("enrol", "sign-again"): return
        step, says = words[0]
        if says.get("key", request.key_id) != request.key_id: return  # it is of an earlier answer, out of a cache
        self.routes.learn(request, says, observes=True)
        if step == "enrol" and "key" in says: self.key.lost(says["key"])
        if proof.session and "error" in says: self.session.refused(request, proof, says["error"])
        start(self.key.wait, 0)
