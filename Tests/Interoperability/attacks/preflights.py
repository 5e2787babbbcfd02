"""CORS preflights, which a rule may let through unjudged: nothing may be executed by one.

/hosted has a rule that forwards them, and handlers for POST alone. /v1/orders has a rule that says
nothing of them, and handlers that run for every method, as functions of Django and scripts of PHP
do.
"""
from attacks.attack import Attack
from attacks.bodies import changed
from attacks.genuine import FORM
from client import chunk, head

HOST = "api.interop.test"
ASKED = [("Origin", "https://a.example"), ("Access-Control-Request-Method", "POST")]
# By which applications take the request for one with another method.
OVERRIDES = ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-Method",
             "X_HTTP_Method_Override", "X.HTTP.Method.Override", "_method"]


def preflight(path, more=(), query=""):
    def run(stand, token):
        stand.ask("OPTIONS", f"{path}?t={token}{query}", [*ASKED, *more], host=HOST)

    return run


def with_content(path, framing, body):
    """Content that a preflight does not have, whole or none."""
    def run(stand, token):
        content = body(changed(token))
        fields = [("Host", HOST), FORM, *ASKED, framing(content)]
        with stand.connect() as client:
            client.send(head("OPTIONS", f"{path}?t={token}", fields) + content)
            client.answer("OPTIONS")

    return run


def forwarded(stand, token):
    """What browsers send reaches the application, which says no by itself, or nothing."""
    answer = stand.ask("OPTIONS", f"/hosted?t={token}", ASKED, host=HOST)
    if answer is None or answer.status == 401:
        return f"a preflight got {answer and answer.status}"
    return None


def chunked(content):
    return ("Transfer-Encoding", "chunked")


def length(content):
    return ("Content-Length", len(content))


def rows(path):
    yield "bare", preflight(path)
    yield "_method in the query", preflight(path, query="&_method=POST")
    for name in OVERRIDES:
        yield name, preflight(path, [(name, "POST")])
    for name, value in [("Upgrade", "websocket"), ("Upgrade", "h2c"), ("Expect", "100-continue"),
                        ("Connection", "origin"), ("Content-Length", "0"), ("Cookie", "a=b"),
                        ("App-Attest-Verdict", "pass"), ("X-Original-URL", "/v1/orders")]:
        yield f"{name}: {value}", preflight(path, [(name, value)])
    yield "content", with_content(path, length, bytes)
    yield "chunked content", with_content(path, chunked, lambda c: chunk(c) + b"0\r\n\r\n")
    yield "chunked, empty", with_content(path, chunked, lambda c: b"0\r\n\r\n")


ATTACKS = [Attack("preflight", "as browsers send it", forwarded)] + [
    Attack("preflight", f"{path}, {name}", run)
    for path in ["/hosted", "/v1/orders"] for name, run in rows(path)
]
