"""Apple's bits and risk metric: who may run, what the application is told, and what it can be made
to say.
"""
import concurrent.futures
import json
import os
import time

import apple
from attacks.attack import Attack, NotApplicable
from attacks.genuine import FORM, order

TOKEN_FIELD = "App-Attest-Device-Token"
PATIENCE = 20.0


def new_token(stand, token, environment="production"):
    """Of a device that no other attack has, at no other backend."""
    return apple.token(f"{os.path.basename(stand.folder)}-{token}", environment)


def spellings(name):
    """The name of one of the gateway's fields, as it is and as servers may take others for it."""
    twins = [name.replace("-", mark) for mark in "_.~"]
    return [name, name.upper(), *twins, name.replace("-", "_", 1),
            "HTTP_" + twins[0].upper()]


class Sent:
    """A signed request to /trial, by the rule of a host; `promised`: that it may be executed."""

    def __init__(self, stand, token, rule, tokens=(), query="", key=None, more=(), promised=True,
                 gateway=None):
        target, content = f"/trial?t={token}{query}", order(token)
        if promised:
            stand.promise(token, "POST", target, content)
        proof = stand.proof("POST", target, content, device=key, gateway=gateway)
        fields = [FORM, *more, *proof, *((TOKEN_FIELD, text) for text in tokens)]
        self.answer = stand.ask("POST", target, fields, content, host=f"{rule}.interop.test",
                                gateway=gateway)
        self.status = self.answer and self.answer.status
        said = self.answer.fields.get("app-attest-error", "") if self.answer else ""
        self.reason = said.split(";")[0]

    def unlike(self, status, reason=""):
        """What is wrong, when it is not this."""
        if self.status != status or reason != self.reason:
            return f"got {self.status} {self.reason}, not {status} {reason}"
        if any(name in self.answer.fields for name in
               ["app-attest-device-bits", "app-attest-device-token", "app-attest-risk"]):
            return f"the client got {self.answer.fields}"
        return None


def told(stand, token, name):
    """What the application was told in a field; None when it did not run."""
    for record in stand.records_of(token):
        if record["stage"] == "executed":
            return record["fields"].get(name, "")
    return None


def needs_apple(run):
    def checked(stand, token):
        if not stand.apple:
            raise NotApplicable("portcullis-apple was not built")
        return run(stand, token)

    return checked


def clean(rule):
    def run(stand, token):
        fault = Sent(stand, token, rule, [new_token(stand, token)]).unlike(200)
        bits = told(stand, token, "app-attest-device-bits")
        if not fault and bits != "bit0=0, bit1=0":
            fault = f"the application was told {bits!r}"
        if not fault and told(stand, token, "app-attest-device-token"):
            fault = "the application saw the device token"
        return fault

    return run


def refused(rule, make, status, reason):
    """`make` gives the lines of the token's field."""
    def run(stand, token):
        return Sent(stand, token, rule, make(stand, token), promised=False).unlike(status, reason)

    return run


def flagged(rule, more=(), reinstalled=False):
    def run(stand, token):
        for _ in range(2 if reinstalled else 1):
            fault = Sent(stand, token, rule, [apple.token(apple.FLAGGED)], more=more,
                         promised=False).unlike(403, "device-flagged")
            if fault:
                return fault
        return None

    return run


def watched(stand, token):
    fault = Sent(stand, token, "watched", [apple.token(apple.FLAGGED)]).unlike(200)
    seen = [told(stand, token, f"app-attest-{name}") for name in
            ["verdict", "reason", "device-bits"]]
    if seen != ["refuse", "device-flagged", "bit0=1, bit1=0"]:
        fault = fault or f"the application was told {seen}"
    return fault


def twice(rule, change=lambda text: text):
    def run(stand, token):
        text = new_token(stand, token)
        fault = Sent(stand, token, rule, [text]).unlike(200)
        other = stand.token()
        stand.kin[token] = [other]
        again = Sent(stand, other, rule, [change(text)], promised=False)
        return fault or again.unlike(400, "device-token-used")

    return run


def at_once(rule):
    def run(stand, token):
        text = new_token(stand, token)
        names = [token, *(stand.token() for _ in range(3))]
        stand.kin[token] = names[1:]
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            all_sent = list(pool.map(lambda name: Sent(stand, name, rule, [text]), names))
        passed = [sent for sent in all_sent if sent.status == 200]
        ran = [name for name in names if told(stand, name, "app-attest-verdict") is not None]
        if len(passed) != 1 or len(ran) != 1:
            return f"{len(passed)} of {len(names)} passed with one token, and {len(ran)} ran"
        return next(filter(None, (sent.unlike(400, "device-token-used") for sent in all_sent
                                  if sent.status != 200)), None)

    return run


def silent(rule, runs):
    """Nobody answers for Apple."""
    def run(stand, token):
        gateway = stand.silent()
        sent = Sent(stand, token, rule, [new_token(stand, token)], promised=runs, gateway=gateway)
        if not runs:
            return sent.unlike(503, "device-check-unavailable")
        seen = [told(stand, token, f"app-attest-{name}") for name in
                ["verdict", "reason", "device-bits"]]
        if seen != ["error", "device-check-unavailable", ""]:
            return f"the application was told {seen}"
        return sent.unlike(200)

    return run


def forged(name, value, rule):
    """The client's own copy of what only the gateway says."""
    def run(stand, token):
        more = [(spelling, value) for spelling in spellings(name)]
        fault = Sent(stand, token, rule, [new_token(stand, token)], more=more,
                     key=stand.risky_device()).unlike(200)
        for record in stand.records_of(token):
            for field, seen in record.get("fields", {}).items():
                if value in str(seen):
                    return f"the application saw {field}: {seen}"
        return fault

    return run


# What an application is made to say

def log_line(stand, key):
    """The gateway's line about the one request of a key; the response may come before it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with open(stand.gateway.log, "rb") as log:
            for line in log.read().decode("latin-1").split("\n")[:-1]:
                if key.log_name in line:
                    return json.loads(line)
        time.sleep(0.02)
    return {}


def needs_mirror(run):
    def checked(stand, token):
        if not stand.backend.adds_fields:
            raise NotApplicable("adds no fields to responses")
        return run(stand, token)

    return needs_apple(checked)


def asks(stand, token, text):
    """The application sets bits by its response; they change, for the next request."""
    key = stand.device()
    fault = Sent(stand, token, "trial", [new_token(stand, token)], key=key,
                 query=f"&set=App-Attest-Device-Bits&to={text}").unlike(200)
    if not fault and log_line(stand, key).get("device_update") != "asked":
        fault = "the application's word was not taken"
    stand.kin[token] = []
    deadline = time.monotonic() + PATIENCE
    while not fault:
        other = stand.token()
        stand.kin[token].append(other)
        # It runs until Apple has the bit.
        if Sent(stand, other, "trial", [new_token(stand, token)]).status == 403:
            return None
        if time.monotonic() > deadline:
            fault = "Apple never had the bit"
        time.sleep(0.1)
    return fault


def echoes(query, more=()):
    """Nothing that a client can make a sound application say changes its bits."""
    def run(stand, token):
        key = stand.device()
        sent = Sent(stand, token, "trial", [new_token(stand, token)], query=query, key=key,
                    more=more)
        # Frameworks refuse line breaks by an error of their own. aiohttp finds them when it writes the response, and
        # closes the connection.
        if sent.reason not in ("", "origin-closed") or sent.status not in (200, 400, 500, 502):
            return f"got {sent.status} {sent.reason}"
        line = log_line(stand, key)
        if not line or line.get("device_update") == "asked":
            return "the response changes the bits" if line else "the log has no line"
        return sent.unlike(200) if sent.status == 200 else None

    return run


def nowhere(stand, _):
    """No device token is in any file: of the server, of the application or of the gateway."""
    for folder, _, names in os.walk(stand.folder):
        for name in names:
            try:
                with open(os.path.join(folder, name), "rb") as file:
                    if apple.MARK.encode() in file.read():
                        return f"a device token is in {name}"
            except OSError:
                # Sockets.
                pass
    return None


# The risk metric

def risk(rule, metric, status, seen):
    def run(stand, token):
        key = stand.risky_device() if metric else None
        sent = Sent(stand, token, rule, key=key, promised=status == 200)
        if status != 200:
            return sent.unlike(status, "risk-exceeded")
        found = told(stand, token, "app-attest-risk")
        if found != seen:
            return f"the application was told {found!r}"
        return sent.unlike(200)

    return run


def ramped(stand, token):
    """A key is inside the ramp or outside of it, and stays there."""
    stand.kin[token] = []
    for _ in range(4):
        key, found = stand.risky_device(), set()
        for _ in range(3):
            name = stand.token()
            stand.kin[token].append(name)
            sent = Sent(stand, name, "ramped", key=key)
            ran = told(stand, name, "app-attest-risk")
            found.add((sent.status, ran))
        if not found <= {(200, "20;mark=risk-exceeded")} and not found <= {(403, None)}:
            return f"one key got {found}"
    return None


def rows():
    for rule in ["trial", "kind"]:
        yield f"{rule}: a new token", clean(rule), True
        for name, make, reason in [
            ("no token", lambda *_: [], "device-token-missing"),
            ("an empty token", lambda *_: [""], "device-token-malformed"),
            ("no base64", lambda *_: ["no base64"], "device-token-malformed"),
            ("two tokens", lambda stand, token: [new_token(stand, token)] * 2,
             "device-token-malformed"),
            ("two tokens in a line",
             lambda stand, token: [", ".join([new_token(stand, token)] * 2)],
             "device-token-malformed"),
            ("a long token", lambda *_: ["A" * 8196], "device-token-malformed"),
            ("not Apple's", lambda *_: [apple.foreign()], "device-token-malformed"),
            ("another environment", lambda stand, token: [new_token(stand, token, "development")],
             "device-token-malformed"),
        ]:
            yield f"{rule}: {name}", refused(rule, make, 400, reason), False
        yield f"{rule}: flagged", flagged(rule), False
        yield f"{rule}: flagged, with another key", flagged(rule, reinstalled=True), False
        yield f"{rule}: flagged, with bits of its own", flagged(
            rule, [(name, value) for name in spellings("App-Attest-Device-Bits")
                   for value in ["0,0", "bit0=0, bit1=0"]]), False
        yield f"{rule}: twice", twice(rule), False
        yield f"{rule}: twice, in another spelling", twice(rule, respelt), False
        yield f"{rule}: four times at once", at_once(rule), False
    yield "twins of the token's field", with_twins, False
    yield "a token without a proof", unproven, False
    yield "watched: flagged", watched, False
    yield "trial: Apple is silent", silent("trial", False), False
    yield "kind: Apple is silent", silent("kind", True), False
    for name, value in [("App-Attest-Device-Bits", "bit0=7"), ("App-Attest-Device-Token", "Zm9v"),
                        ("App-Attest-Risk", "4711"), ("App-Attest-Context", "Zm9v")]:
        yield f"{name}: forged", forged_around(name, value), False


def respelt(text):
    return text.rstrip("=").replace("+", "-").replace("/", "_")


def with_twins(stand, token):
    more = [(name, new_token(stand, token)) for name in spellings(TOKEN_FIELD)[2:]]
    return Sent(stand, token, "trial", more=more, promised=False).unlike(
        400, "device-token-missing")


def unproven(stand, token):
    answer = stand.ask("POST", f"/trial?t={token}", [FORM, (TOKEN_FIELD, new_token(stand, token))],
                       order(token), host="trial.interop.test")
    return None if answer and answer.status == 401 else f"got {answer and answer.status}"


def forged_around(name, value):
    """Beside the good token where the gateway reads the field, so that the request runs."""
    rule = "risky" if name == TOKEN_FIELD else "trial"
    return forged(name, value, rule)


def mirrored():
    bits = "App-Attest-Device-Bits"
    spelt = [(name, "0,0") for name in spellings(bits)]
    yield "the application sets a bit", lambda stand, token: asks(stand, token, "1,-")
    yield "a mirror of the request", echoes("&mirror=1", spelt)
    for name, value in [
        ("X-Echo", f"a%0D%0A{bits}:%200,0"), ("X-Echo", f"a%0A{bits}:%200,0"),
        ("X-Echo", f"a%0D{bits}:%200,0"),
        ("App_Attest_Device_Bits", "0,0"), ("X-App-Attest-Device-Bits", "0,0"),
        ("X-HTTP_APP_ATTEST_DEVICE_BITS", "0,0"), (bits, "bit0=0, bit1=0".replace(" ", "%20")),
        (bits, "0,0,0"), (bits, "0"), (bits, "true,false"),
    ]:
        yield f"{name}: {value} is said", echoes(f"&set={name}&to={value}")


def risks():
    yield "risky: unknown", risk("risky", None, 200, "unknown")
    yield "risky: above the limit", risk("risky", 20, 200, "20;mark=risk-exceeded")
    yield "strict: unknown", risk("strict", None, 200, "unknown")
    yield "strict: above the limit", risk("strict", 20, 403, None)
    yield "ramped: above the limit", ramped


ATTACKS = [
    *(Attack("device", name, needs_apple(run), runs=runs) for name, run, runs in rows()),
    *(Attack("device", name, needs_mirror(run)) for name, run in mirrored()),
    *(Attack("risk", name, run) for name, run in risks()),
    Attack("device", "no token is in any file", needs_apple(nowhere), alone=True),
]
