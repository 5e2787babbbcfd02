"""Routes: what each of them signs, and whether its rule observes. The plan says it before the first request."""
import contextlib, ipaddress, re, threading, urllib.parse
from stack import File, Shared
from words import UNKNOWN, Limits, document

class Routes:
    """`known` has what answers said, by the route's name. The route that was used last is the last one."""
    def __init__(self, client, path):
        self.client, self.now, self.file, self.fetching = client, client.now, File(path), Shared(self.fetch)
        self.known, self.lock = self.file.read(), threading.Lock()
        self.plan, self.etag, self.said, self.due, self.failures = None, None, 0, 0, 0

    def name(self, request):
        """Host, method and path. A segment that looks like an id is `*`."""
        looks = "[0-9]+|(?=.*[0-9])[0-9a-fA-F-]{8,}|.{25,}"
        path = "/".join("*" if re.fullmatch(looks, part) else part for part in request.target.split("?")[0].split("/"))
        return f"{self.client.host} {request.method} {path}"

    def find(self, request):
        """What is known of the route. A request waits for the plan where nothing else says it."""
        if self.client.has_plan and self.now() >= self.due: self.fetching.start()
        if not self.current(request) and not self.plan and self.fetching.is_running():
            request.wait(Limits.plan_wait, self.fetching.wait)
        return self.current(request)

    def current(self, request):
        """What the plan or the last answer says, whichever came later. None where neither knows the route."""
        with self.lock:
            known = self.known.pop(self.name(request), None)
            if known: self.known[self.name(request)] = known
        if not self.plan or known and known["said"] >= self.said: return known
        return self.planned(request) | {"observes": bool(known and known["observes"]), "said": self.said}

    def learn(self, request, says, observes=False, moved=False):
        """Learns from an answer's parameters. `moved`: the proof was not where the rule looks for it."""
        known = self.current(request)
        if "sign" not in says: return known
        old = known or UNKNOWN
        route = old | {"sign": says["sign"].split(), "headers": says.get("headers", "").split(), "observes": observes,
                       "strict": "counter" not in says,
                       "device": says.get("device") == "token", "said": self.now()}
        if moved: route |= {"fields": {}, "pointer": None}
        if "accept" in says: route["accept"] = says["accept"].split()
        pairs = [pair.split("=", 1) for pair in says.get("fields", "").split() if "=" in pair]
        if "fields" in says: route["fields"] = dict(pairs)
        if "challenge_pointer" in says: route["pointer"] = urllib.parse.unquote(says["challenge_pointer"])
        if any(route[part] != old[part] for part in ("sign", "headers")):
            self.due = min(self.due, self.now() + Limits.plan_doubt_age)
        return self.change(request, **route)

    def change(self, request, **parts):
        route = (self.current(request) or UNKNOWN) | parts
        with self.lock:
            before = self.known.pop(self.name(request), None)
            self.known[self.name(request)] = route
            while len(self.known) > Limits.routes_learned: del self.known[next(iter(self.known))]
            if not before or before | {"said": route["said"]} != route:
                with contextlib.suppress(OSError), self.file.change() as kept:
                    kept.clear()
                    kept.update(self.known)
        return route

    def planned(self, request):
        path, host = request.target.split("?")[0], re.sub(r"\.?(:[0-9]*)?$", "", self.client.host.lower())
        rule = next((rule for rule in self.plan["rules"] if {"*", request.method} & set(rule["methods"])
                     and any(is_host(pattern.lower(), host) for pattern in rule["hosts"])
                     and any(is_path(pattern, path) for pattern in rule["paths"])), self.plan.get("unmatched") or {})
        parts = {part: rule[part] for part in ("sign", "headers", "accept", "fields", "device") if part in rule}
        return UNKNOWN | parts | {"strict": rule.get("counter") == "strict", "pointer": rule.get("challenge_pointer")}

    def fetch(self):
        answer = self.client.call("/plan", method="GET", fields=[("If-None-Match", self.etag)] if self.etag else [])
        plan = document(answer, portcullis_plan=int, rules=list)
        if plan and plan["portcullis_plan"] == 1 or answer and answer.status == 304:
            age = re.search("max-age=([0-9]{1,9})", answer.fields.get("cache-control", ""))
            self.due = self.now() + (min(max(int(age[1]), 60), 86400) if age else Limits.plan_usual_age)
            self.failures = 0
            if plan: self.said, self.plan, self.etag = self.now(), plan, answer.fields.get("etag")
        else:
            hold = min(Limits.plan_failure_hold * 2 ** min(self.failures, 9), Limits.plan_failure_hold_max)
            self.due = self.now() + (answer and answer.retry_after(self.now()) or hold)
            self.failures += 1

def is_host(pattern, host):
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(pattern.strip("[]")) == ipaddress.ip_address(host.strip("[]"))
    return pattern in ("*", host) or pattern[:2] == "*." and host.endswith(pattern[1:])

def is_path(pattern, path):
    words, parts = pattern.removeprefix("/").split("/"), path.removeprefix("/").split("/")
    for at, word in enumerate(words):
        if word == "**": return True
        if at == len(parts) or word == "*" and not parts[at]: return False
        if word != "*" and urllib.parse.unquote_to_bytes(word) != urllib.parse.unquote_to_bytes(parts[at]): return False
    return len(words) == len(parts)
