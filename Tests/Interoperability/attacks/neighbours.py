"""One client's words and limits, and another's: addresses, the log, answers."""
import json
import time

from attacks.attack import Attack, NotApplicable
from client import head

CALLS = 100
# So many requests of one address a second, and at once.
RATE = 20
LIMITS = f"{{ address_requests: {RATE}/s, address_burst: {RATE} }}"


def served(stand, token, name, value):
    """How many of many requests of one client are served; its proxy says the value.

    In `value`, a line end begins another field line, and # is the number of the request.
    """
    count = 0
    begun = time.monotonic()
    with stand.limited(LIMITS, name).connect_tcp() as client:
        for number in range(CALLS):
            lines = [(name, line) for line in value.replace("#", str(number)).split("\n")]
            # Refused without a proof, so that no application slows this down.
            client.send(head("GET", f"/profile?t={token}", [("Host", "a"), *lines]))
            answer = client.answer()
            if answer is None or answer.status == 429:
                break
            count += 1
    # What the limit gives back meanwhile, and the burst.
    allowed = RATE + RATE * (time.monotonic() - begun) + 5
    return count, allowed


def counted(name, value):
    def run(stand, token):
        count, allowed = served(stand, token, name, value)
        if count > allowed:
            return f"{count} of {CALLS} requests were served where {allowed:.0f} are allowed"
        return None

    return run


def logged(stand):
    """The log's whole lines; a file grows page by page, so the last may be there in part."""
    with open(stand.gateway.log, "rb") as log:
        content = log.read()
    return content[:content.rfind(b"\n") + 1]


def malformed_line(stand, before):
    """The line of a request that was answered 400; lines are written a little later."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        for line in map(json.loads, logged(stand)[before:].splitlines()):
            if line.get("status") == 400:
                return line
        time.sleep(0.02)
    return None


def after_another(method, broken):
    """A head that can't be read, after another client's request: nothing of that is left."""
    def run(stand, token):
        for _ in range(4):
            content = b"x" * 41 if method == "POST" else b""
            stand.ask(method, f"/open?t={token}", content=content, host="earlier.test")
            before = len(logged(stand))
            with stand.connect() as other:
                other.send(broken)
                answer = other.answer()
            if answer is None or not answer.content:
                return "the answer to a malformed request lacks its content"
            line = malformed_line(stand, before) or {}
            left = {name: line[name] for name in ("method", "host", "path", "request_bytes", "key")
                    if line.get(name) in (method, "earlier.test", "/open", 41)}
            if left:
                return f"a malformed request is logged with {left}"
        return None

    return run


def user_of_connection(stand, token):
    """Who one client proved to be with NTLM, another is not, though connections are shared."""
    if not stand.backend.has_connection_users:
        raise NotApplicable("authenticates no connections")
    for turn in range(8):
        with stand.connect() as client, stand.connect() as other:
            for said in [[], [("Authorization", f"NTLM alice{turn}")]]:
                client.send(head("GET", f"/who?t={token}", [("Host", "a"), *said]))
                client.answer()
            other.send(head("GET", f"/who?t={token}", [("Host", "a")]))
            answer = other.answer()
        if answer and b"alice" in answer.content:
            return f"another client got {answer.status} {answer.content!r}"
    return None


BROKEN = {"no request": b"\x01\x02\r\n\r\n",
          "a field without a colon": b"GET / HTTP/1.1\r\nbad\r\n\r\n",
          "a chunked list": b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: a, chunked\r\n\r\n"}
# What a client may write into the field; a proxy appends the address that it saw.
WRITTEN = ['"', '"203.0.113.1', '"a", "b', '203.0.113.1:"', "unknown", "_hidden", "[::1", '"\\',
           "999.1.1.1", "127.0.0.1", "\xff", "::ffff:127.0.0.1", 'for="', "'", "", "a b", ";", "203.0.113.#", "2001:db8::#"]
# What a proxy alone may say when it knows nothing.
ALONE = ['"', "unknown", "[::1", "999.1.1.1", ","]
# The same in RFC 7239's field, which has quoting.
FORWARDED = ['for="', 'for="203.0.113.1', "for=unknown", 'for="[::1"', 'for=203.0.113.1;by="',
             "for=127.0.0.1", 'for="\\"', "", 'for="a", for="b', "by=x"]

ATTACKS = [
    *(Attack("address", f"{value!r} and an address", once=True,
             run=counted("x-forwarded-for", f"{value}, 198.51.100.{number}"))
      for number, value in enumerate(WRITTEN, 1)),
    *(Attack("address", f"{value!r} and an address in a line of its own", once=True,
             run=counted("x-forwarded-for", f"{value}\n198.51.101.{number}"))
      for number, value in enumerate(WRITTEN, 1)),
    *(Attack("address", f"{value!r} alone", once=True, run=counted("x-forwarded-for", value))
      for value in ALONE),
    *(Attack("address", f"Forwarded: {value} and an address", once=True,
             run=counted("forwarded", f"{value}, for=198.51.100.{number}"))
      for number, value in enumerate(FORWARDED, 1)),
    Attack("neighbours", "NTLM", user_of_connection),
    *(Attack("neighbours", f"{name} after {method}", after_another(method, broken), alone=True)
      for method in ["HEAD", "POST"] for name, broken in BROKEN.items()),
]
