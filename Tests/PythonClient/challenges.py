"""Challenges, and the session: what the gateway gave to this process and was not used."""
import base64, collections, contextlib, re, threading, time
from stack import Shared, start
from words import OPENING, Limits, document, verdict

class Challenges:
    """What the gateway gave to this process and was not used, the newest last."""
    def __init__(self, client):
        self.client, self.now, self.changed = client, client.now, threading.Condition()
        self.kept, self.used, self.life = [], collections.deque(maxlen=Limits.used_max), Limits.challenge_lifetime
        self.calls, self.waiting, self.failed, self.fruitless, self.held = {}, 0, 0, 0, 0

    def keep(self, texts):
        with self.changed:
            known = [*self.used, *(text for text, _ in self.kept)]
            new = [text for text in texts if re.fullmatch("[A-Za-z0-9_-]{56}", str(text)) and text not in known]
            until = self.now() + self.life - min(self.life / 5, 10)
            self.kept = [*self.kept, *((text, until) for text in new)][-Limits.challenges_kept:]
            self.changed.notify_all()
            return new

    def forget(self):
        """All but the newest, which came with the answer that said so."""
        with self.changed: self.kept = self.kept[-1:]

    def take(self, seconds, observed=False):
        """The newest one, and until when it is used. None where the gateway gives none in time."""
        with self.changed:
            self.waiting += 1
            try: return self.wait_for_one(time.monotonic() + seconds, observed)
            finally: self.waiting -= 1

    def prepare(self):
        with self.changed:
            if self.kept or self.calls or self.now() < self.held: return
            self.calls[began := time.monotonic()] = Limits.challenges_asked
        self.ask(began, Limits.challenges_asked)

    def wait_for_one(self, until, observed):
        failed = self.failed
        while True:
            self.kept = [(text, end) for text, end in self.kept if self.now() < end]
            if self.kept:
                self.used.append(self.kept[-1][0])
                return self.kept.pop()
            if self.now() < self.held or self.failed != failed: return None
            missing = self.waiting - sum(self.calls.values())  # a call is a time and a count
            if missing > 0 and len(self.calls) < Limits.calls_max:
                began = time.monotonic()
                self.calls[began] = min(max(missing, Limits.challenges_asked), Limits.count_max)
                start(self.ask, began, self.calls[began])
            end = min(until, min(self.calls) + Limits.observed_wait) if observed else until
            if time.monotonic() >= end: return None
            self.changed.wait(end - time.monotonic())

    def ask(self, began, count):
        answer = self.client.call("/challenges", {"purpose": "assertion", "count": count})
        good = document(answer, challenges=list, expires_in=(int, float))
        with self.changed:
            del self.calls[began]
            if good: self.life = good["expires_in"]
            if self.keep(good["challenges"] if good else []): self.fruitless = 0
            else:
                self.failed += 1
                self.fruitless = min(self.fruitless + 1, Limits.fruitless_max) if good else self.fruitless
                after = Limits.fruitless_hold * 2 ** (self.fruitless - 1)
                held = after if good else answer and answer.retry_after(self.now())
                self.held = self.now() + min(held or 0, Limits.challenge_hold_max)
            self.changed.notify_all()

class Session:
    """One session at a time. `open` of it are the numbers of its requests that have no answer yet."""
    def __init__(self, client):
        self.client, self.now, self.opening, self.lock = client, client.now, Shared(self.open), threading.Lock()
        self.kept, self.held = None, 0

    def good(self, key_id):
        return self.kept if self.kept and self.kept["key_id"] == key_id and self.now() < self.kept["ends"] else None

    def is_due(self, session):
        return (not session or self.now() >= session["renewed"]) and self.now() >= self.held

    def take(self, key_id, seconds):
        """The session and the next number of it, or twice None."""
        session = self.good(key_id)
        if self.is_due(session):
            self.opening.start()
            if not session: self.opening.wait(seconds)
        with self.lock:
            session = self.good(key_id)
            if not session or session["next"] >= min(session["open"], default=session["next"]) + session["window"]:
                return None, None
            session["next"] += 1
            session["open"].add(session["next"] - 1)
            return session, session["next"] - 1

    def answered(self, proof):
        with self.lock: proof.session["open"].discard(proof.number)

    def open(self):
        # A request may have looked before the opening that just ended, and have asked for this one after it.
        if not self.is_due(self.good(self.client.key.file.read().get("id"))): return
        request, answer = self.client.request("POST", self.client.endpoints + "/sessions", route=OPENING), None
        with contextlib.suppress(Exception): answer = request.send()
        session = document(answer, session=str, secret=str, expires_in=(int, float), window=int)
        if session:
            life = session["expires_in"]
            session.update(secret=base64.b64decode(session["secret"]), key_id=request.key_id, next=1, open=set(),
                           renewed=self.now() + life * 0.8, ends=self.now() + life - min(life / 10, 10))
            self.kept = session
            return
        reason, step, _ = verdict(answer) if answer else (None, None, None)
        passes = reason is None or answer.status in (401, 429) or answer.status >= 500 or step == "retry-later"
        after = answer.retry_after(self.now()) if answer and passes else None
        self.held = self.now() + (after or (Limits.short_hold if passes else Limits.long_hold))

    def refused(self, request, proof, reason):
        """After a refusal, or the `error` of an advice. The request is signed with the key then."""
        if reason == "session-replayed": return
        request.avoids_session = True
        if reason == "session-refused": self.client.routes.change(request, accept=["assertion"])
        elif self.kept is proof.session: self.kept = None
        if reason == "session-unknown" and proof.route["observes"]: self.client.challenges.forget()
