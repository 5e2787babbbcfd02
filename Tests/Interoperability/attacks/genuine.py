"""Requests that are what they should be: they run, once, as they were signed.

Without these, a gateway that answers nothing would hold against everything.
"""
import time

from attacks.attack import Attack, NotApplicable
from client import chunk, head

FORM = ("Content-Type", "application/x-www-form-urlencoded")
KEY = [("idempotency-key", "k-1")]


def order(token):
    return f"to=alice&amount=1&t={token}".encode()


def post(path, fields=(), chunked=False, expect=False, streamed=False):
    def run(stand, token):
        target, content = f"{path}?t={token}", order(token)
        stand.promise(token, "POST", target, content, fields, streamed)
        sent = [("Host", "api.interop.test"), FORM, *fields,
                *stand.proof("POST", target, content, fields)]
        framing = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", len(content))
        sent += [framing, *([("Expect", "100-continue")] if expect else [])]
        body = chunk(content[:9]) + chunk(content[9:]) + b"0\r\n\r\n" if chunked else content
        with stand.connect() as client:
            client.send(head("POST", target, sent) + body)
            answer = client.answer("POST")
        return expect_success(answer)

    return run


def expect_success(answer):
    if answer is None or answer.status >= 300:
        return f"a genuine request got {answer and (answer.status, answer.content[:90])}"
    return None


def large(stand, token):
    """More than a rule keeps in memory by default.

    A disk that is too busy to hold it is 503 at once, and a client comes again.
    """
    content = order(token) + b"&x=" + b"y" * 600 * 1024
    target = f"/pay?t={token}"
    stand.promise(token, "POST", target, content)
    device, end = stand.device(), time.monotonic() + 60
    while True:
        fields = [FORM, *stand.proof("POST", target, content, device=device)]
        answer = stand.ask("POST", target, fields, content)
        if answer is None or answer.status != 503 or time.monotonic() > end:
            return expect_success(answer)
        time.sleep(1)


def slow(stand, token):
    """One byte at a time."""
    target, content = f"/pay?t={token}", order(token)
    stand.promise(token, "POST", target, content, KEY)
    fields = [("Host", "a"), FORM, *KEY, ("Content-Length", len(content)),
              *stand.proof("POST", target, content, KEY)]
    with stand.connect() as client:
        for octet in head("POST", target, fields) + content:
            client.send(bytes([octet]))
        return expect_success(client.answer("POST"))


def pipelined(stand, token):
    """Five in one write, each with content of its own."""
    more = [stand.token() for _ in range(4)]
    stand.kin[token] = more
    whole = b""
    for name in [token, *more]:
        target, content = f"/pay?t={name}", order(name) + b"&x=" + b"y" * len(whole)
        stand.promise(name, "POST", target, content, KEY)
        whole += head("POST", target, [
            ("Host", "a"), FORM, *KEY, ("Content-Length", len(content)),
            *stand.proof("POST", target, content, KEY),
        ]) + content
    with stand.connect() as client:
        client.send(whole)
        return next(filter(None, (expect_success(client.answer("POST")) for _ in range(5))), None)


def plain(method, path):
    def run(stand, token):
        target = f"{path}?t={token}"
        stand.promise(token, method, target)
        return expect_success(stand.ask(method, target, stand.proof(method, target)))

    return run


def script(stand, token):
    if not stand.backend.has_scripts:
        raise NotApplicable("has no scripts")
    return post("/api/pay.php")(stand, token)


def content_form(stand, token):
    content = order(token)
    stand.promise(token, "POST", "/checkin", content)
    fields = [FORM, *stand.proof("POST", "/checkin", content, signed=content)]
    return expect_success(stand.ask("POST", "/checkin", fields, content))


def challenge_form(stand, token):
    target = f"/told?t={token}"
    stand.promise(token, "POST", target, order(token))
    fields = stand.proof("POST", target, signed=lambda challenge: challenge.encode())
    return expect_success(stand.ask("POST", target, [FORM, *fields[:3]], order(token)))


def row(name, run, alone=False):
    return Attack("genuine", name, run, runs=True, alone=alone)


ATTACKS = [
    row("POST /pay", post("/pay", KEY)),
    row("POST /pay without the signed field", post("/pay")),
    row("POST /pay, 600 KiB", large),
    row("POST /pay, chunked", post("/pay", KEY, chunked=True)),
    row("POST /pay, Expect", post("/pay", KEY, expect=True)),
    row("POST /pay, a byte at a time", slow),
    row("POST /pay, five pipelined", pipelined),
    row("POST /upload", post("/upload", streamed=True)),
    row("POST /v1/orders", post("/v1/orders")),
    row("POST /hosted", post("/hosted")),
    row("POST /api/pay.php", script),
    row("GET /profile", plain("GET", "/profile")),
    row("DELETE /item", plain("DELETE", "/item")),
    row("GET /files/private/x", plain("GET", "/files/private/x")),
    row("sign: content", content_form),
    row("sign: challenge", challenge_form),
    row("POST /pay when all is over", post("/pay", KEY), alone=True),
]
