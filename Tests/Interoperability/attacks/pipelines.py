"""Requests behind requests: pipelined, smuggled, left over from content that nobody read."""
import threading

from attacks.attack import Attack, NotApplicable
from attacks.genuine import FORM, KEY, order
from client import chunk, head

LINE = "\r\n"
ROUNDS = 12


def hidden(token, host="interop.test"):
    """A request to a handler behind a rule, as the gateway would word one that passed."""
    content = f"to=mallory&amount=1000000&t={token}".encode()
    return head("POST", f"/pay?t={token}&hidden=1", [
        ("Host", host), FORM, ("Content-Length", len(content)), ("App-Attest-Verdict", "pass"),
    ]) + content


def second_unsigned(stand, token):
    """A signed request and one without a proof in one write."""
    target, content = f"/pay?t={token}", order(token)
    stand.promise(token, "POST", target, content, KEY)
    fields = [("Host", "interop.test"), FORM, *KEY, ("Content-Length", len(content)),
              *stand.proof("POST", target, content, KEY)]
    with stand.connect() as client:
        client.send(head("POST", target, fields) + content + hidden(token))
        client.answer("POST")
        client.answer("POST")


def smuggled(framing, body):
    """`framing` is lines as they are; `body` gets the hidden request."""
    def run(stand, token):
        inner = hidden(token)
        with stand.connect() as client:
            client.send(
                b"POST /open HTTP/1.1\r\nHost: interop.test\r\n"
                + framing(inner) + b"\r\n" + body(inner)
            )
            client.half_close()
            while client.answer("POST"):
                pass

    return run


def both(extra):
    return lambda inner: b"Content-Length: %d\r\n" % (len(inner) + 5) + extra


def lengths(first, second):
    return lambda inner: (
        f"Content-Length: {first(len(inner))}\r\nContent-Length: {second(len(inner))}\r\n".encode()
    )


def only(text):
    return lambda inner: text.encode("latin-1")


def ended(inner):
    return b"0\r\n\r\n" + inner


SMUGGLING = [
    ("CL and TE", both(b"Transfer-Encoding: chunked\r\n"), ended),
    ("CL and TE: xchunked", both(b"Transfer-Encoding: xchunked\r\n"), ended),
    ("CL and TE : chunked", both(b"Transfer-Encoding : chunked\r\n"), ended),
    ("CL and TE tab", both(b"Transfer-Encoding:\tchunked\r\n"), ended),
    ("CL and TE vertical tab", both(b"Transfer-Encoding: \x0bchunked\r\n"), ended),
    ("CL and TE folded", both(b"Transfer-Encoding:\r\n chunked\r\n"), ended),
    ("CL and TE twice", both(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n"), ended),
    ("CL and TE identity", both(b"Transfer-Encoding: identity\r\n"), ended),
    ("CL and Transfer_Encoding", both(b"Transfer_Encoding: chunked\r\n"), ended),
    ("CL and Transfer.Encoding", both(b"Transfer.Encoding: chunked\r\n"), ended),
    ("CL and nominated TE",
     both(b"Transfer-Encoding: chunked\r\nConnection: transfer-encoding\r\n"), ended),
    ("CL nominated", lambda inner: b"Connection: content-length\r\nContent-Length: %d\r\n"
     % len(inner), lambda inner: inner),
    ("CL 0 and CL", lengths(lambda size: 0, lambda size: size), lambda inner: inner),
    ("CL and CL 0", lengths(lambda size: size, lambda size: 0), lambda inner: inner),
    ("CL +0", only("Content-Length: +0\r\n"), lambda inner: inner),
    ("CL 0x0", only("Content-Length: 0x0\r\n"), lambda inner: inner),
    ("CL list", only("Content-Length: 0, 0\r\n"), lambda inner: inner),
    ("CL empty", only("Content-Length:\r\n"), lambda inner: inner),
    ("bare CR in a value", only("X: a\rTransfer-Encoding: chunked\r\n"), ended),
    ("bare LF in a value", only("X: a\nContent-Length: 0\n\r\n"), lambda inner: inner),
    ("NUL in a value", only("X: a\0Transfer-Encoding: chunked\r\n"), ended),
    ("chunk size +", only("Transfer-Encoding: chunked\r\n"),
     lambda inner: b"+0\r\n\r\n" + inner),
    ("chunk size 0x", only("Transfer-Encoding: chunked\r\n"),
     lambda inner: b"0x1\r\nx\r\n0\r\n\r\n" + inner),
    ("chunk ended by LF", only("Transfer-Encoding: chunked\r\n"),
     lambda inner: b"1\nx\n0\n\n" + inner),
    ("chunk extension with LF", only("Transfer-Encoding: chunked\r\n"),
     lambda inner: b"1;\nx\r\n0\r\n\r\n" + inner),
    ("chunk size too large", only("Transfer-Encoding: chunked\r\n"),
     lambda inner: b"10000000000000000\r\n" + inner),
    ("trailers hold a head", only("Transfer-Encoding: chunked\r\n"),
     lambda inner: chunk(b"x") + b"0\r\nX: y\r\n" + inner),
]


def unread(method, path, chunked=False, limits=None):
    """Content with a method that usually has none, and others' requests on the same connections.

    A server that leaves it unread takes it for the next request: that one is forged, and its
    answer goes to somebody else.
    """
    def connect(stand):
        return (stand.limited(limits) if limits else stand.gateway).connect()

    def attacker(stand, token):
        inner = hidden(token)
        framing = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", len(inner))
        body = chunk(inner) + b"0\r\n\r\n" if chunked else inner
        with connect(stand) as client:
            client.send(head(method, f"{path}?t={token}", [("Host", "a"), framing]) + body)
            client.answer(method)

    def run(stand, token):
        wrong = []
        done = threading.Event()

        def victim(number):
            with connect(stand) as client:
                for turn in range(ROUNDS * 3):
                    name = f"v{number}x{turn}"
                    client.send(head("GET", f"/open?v={name}", [("Host", "a")]))
                    answer = client.answer()
                    if answer is None:
                        return
                    # A server that is busy or gone says so to everybody; that is no one's answer.
                    if name.encode() not in answer.content and answer.status < 500:
                        wrong.append(f"another client got {answer.status} {answer.content[:120]!r}")
                    if done.is_set() and turn > ROUNDS:
                        return

        victims = [threading.Thread(target=victim, args=(number,)) for number in range(3)]
        for thread in victims:
            thread.start()
        for _ in range(ROUNDS):
            attacker(stand, token)
        done.set()
        for thread in victims:
            thread.join()
        return f"{len(wrong)} times {wrong[0]}" if wrong else None

    return run


def upgraded(value, fields=()):
    """What follows a request for another protocol is not passed on as if it had been agreed."""
    def run(stand, token):
        with stand.connect() as client:
            client.send(head("GET", "/open", [
                ("Host", "a"), ("Connection", "Upgrade"), ("Upgrade", value), *fields,
            ]) + hidden(token))
            client.half_close()
            while client.answer():
                pass

    return run


REFUSED = [("POST", "/pay"), ("POST", "/upload"), ("POST", "//x/pay"), ("POST", "/pay%00"),
           ("post", "/pay"), ("GET", "/profile"), ("POST", "/checkin"), ("DELETE", "/item")]


def refused_content(method, path, framing):
    """The content of a request that is refused is not the next request."""
    def run(stand, token):
        inner = head("GET", f"/open?t={token}&hidden=1", [("Host", "a")])
        fields = {"length": [("Content-Length", len(inner))],
                  "chunked": [("Transfer-Encoding", "chunked")],
                  "Expect": [("Content-Length", len(inner)), ("Expect", "100-continue")]}[framing]
        body = chunk(inner) + b"0\r\n\r\n" if framing == "chunked" else inner
        with stand.connect() as client:
            client.send(head(method, path, [("Host", "a"), FORM, *fields]))
            if framing == "Expect":
                client.answer(method)
            client.send(body)
            client.half_close()
            while client.answer():
                pass
        ran = [record for record in stand.records_of(token) if "hidden" in record["query"]]
        return "its content was executed as a request" if ran else None

    return run


def dropped(method, path):
    """The application executes and then drops the connection: nobody may send it again."""
    def run(stand, token):
        if not stand.backend.drops_connections:
            raise NotApplicable("drops no connections")
        target = f"{path}?t={token}&drop=1"
        content = order(token) if method == "POST" else b""
        fields = KEY if path == "/pay" else []
        stand.promise(token, method, target, content, fields)
        sent = [("Host", "a"), FORM, *fields, *stand.proof(method, target, content, fields)]
        if content:
            sent.append(("Content-Length", len(content)))
        with stand.connect() as client:
            # So that a connection to the server is there already.
            client.send(head("GET", "/open", [("Host", "a")]))
            client.answer()
            client.send(head(method, target, sent) + content)
            client.answer(method)

    return run


def expecting(stand, token):
    """The content of a request with Expect is itself a request."""
    inner = hidden(token)
    with stand.connect() as client:
        client.send(head("GET", "/open", [
            ("Host", "a"), ("Content-Length", len(inner)), ("Expect", "100-continue"),
        ]) + inner)
        client.half_close()
        while client.answer():
            pass


ATTACKS = [
    Attack("pipelines", "unsigned behind signed", second_unsigned),
    *(Attack("pipelines", name, smuggled(framing, body)) for name, framing, body in SMUGGLING),
    Attack("pipelines", "Upgrade: websocket", upgraded("websocket", [
        ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")])),
    Attack("pipelines", "Upgrade: h2c", upgraded("h2c", [("HTTP2-Settings", "AAMAAABk")])),
    *(Attack("pipelines", f"content of a refused {method} {path}, {framing}",
             refused_content(method, path, framing))
      for method, path in REFUSED for framing in ["length", "chunked", "Expect"]),
    *(Attack("replay", f"{method} that the server dropped", dropped(method, path), runs=True)
      for method, path in [("POST", "/pay")]),
    Attack("unread content", "GET", unread("GET", "/open")),
    Attack("unread content", "GET, chunked", unread("GET", "/open", chunked=True)),
    Attack("unread content", "HEAD", unread("HEAD", "/open")),
    Attack("unread content", "DELETE", unread("DELETE", "/open")),
    Attack("unread content", "OPTIONS", unread("OPTIONS", "/open")),
    Attack("unread content", "GET of what is not there", unread("GET", "/nowhere")),
    # Behind a gateway of its own, so that what goes wrong here shows in no other attack.
    Attack("unread content", "POST that is not read",
           unread("POST", "/nowhere", limits="{ pooled: 255 }")),
    Attack("unread content", "POST that is not read, limits.pooled: 0",
           unread("POST", "/nowhere", limits="{ pooled: 0 }")),
    Attack("unread content", "GET, Expect", expecting),
]
