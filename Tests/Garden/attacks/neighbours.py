"""One client's words and limits, and another's: addresses, the log, answers."""
import json
import os
import time

from attacks.attack import Attack, NotApplicable
from client import head

CALLS = 100


def served(stand, token, field):
    """How many of many requests of one client are served; `field` is what its proxy says."""
    count = 0
    begun = time.monotonic()
    with stand.gateway.connect_tcp() as client:
        for _ in range(CALLS):
            # Refused without a proof, so that no application slows this down.
            client.send(head("GET", f"/profile?t={token}", [("Host", "a"), field]))
            answer = client.answer()
            if answer is None or answer.status == 429:
                break
            count += 1
    # What the limit gives back meanwhile, and the burst.
    allowed = 20 + 20 * (time.monotonic() - begun) + 5
    return count, allowed


def counted(value):
    def run(stand, token):
        count, allowed = served(stand, token, ("X-Forwarded-For", value))
        if count > allowed:
            return f"{count} of {CALLS} requests were served where {allowed:.0f} are allowed"
        return None

    return run


def last_line(stand, before):
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        with open(stand.gateway.log, encoding="utf-8") as log:
            log.seek(before)
            lines = log.read().splitlines()
        if lines:
            return json.loads(lines[-1])
        time.sleep(0.02)
    return None


def kept_in_log(broken):
    """A head that can't be read is logged with nothing of another client's request."""
    def run(stand, token):
        stand.ask("HEAD", f"/open?t={token}", host="earlier.test")
        with stand.connect() as client:
            client.send(head("HEAD", f"/open?t={token}&late", [("Host", "earlier.test")]))
            client.answer("HEAD")
            before = os.path.getsize(stand.gateway.log)
            with stand.connect() as other:
                other.send(broken)
                answer = other.answer()
        if answer is None or not answer.content:
            return "the answer to a malformed request lacks its content"
        line = last_line(stand, before)
        left = {name: line[name] for name in ("method", "host", "path") if line and name in line}
        left = {name: value for name, value in left.items() if value in ("HEAD", "earlier.test",
                                                                        "/open")}
        return f"a malformed request is logged with {left}" if left else None

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


# What a client may write into the field; a proxy appends the address that it saw.
WRITTEN = ['"', '"203.0.113.1', '"a", "b', '203.0.113.1:"', "unknown", "_hidden", "[::1", '"\\',
           "999.1.1.1", "127.0.0.1", "\xff", "::ffff:127.0.0.1", 'for="', "'", "", "a b", ";"]
# What a proxy alone may say when it knows nothing.
ALONE = ['"', "unknown", "[::1", "999.1.1.1", ","]

ATTACKS = [
    *(Attack("address", f"{value!r} and an address", counted(f"{value}, 198.51.100.{number}"))
      for number, value in enumerate(WRITTEN, 1)),
    *(Attack("address", f"{value!r} alone", counted(value)) for value in ALONE),
    Attack("neighbours", "NTLM", user_of_connection),
    Attack("neighbours", "log of what is no request", kept_in_log(b"\x01\x02\r\n\r\n"), alone=True),
    Attack("neighbours", "log of a field without a colon", kept_in_log(b"GET / HTTP/1.1\r\nbad\r\n\r\n"),
           alone=True),
]
