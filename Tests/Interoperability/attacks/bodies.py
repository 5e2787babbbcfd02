"""Content that is not what was signed: changed, cut short, kept back, slow.

Under `held` the application must not even be entered. Under `streamed` that is the server's part;
report.py has a table of it.
"""
import itertools

from attacks.attack import Attack
from attacks.genuine import FORM, KEY, order, post
from client import chunk, head
from device import digest_member

ENDINGS = ["whole", "kept back", "closed", "half-closed", "reset", "dripped"]


def changed(token):
    return f"to=mallory&amount=1000000&t={token}&x=".encode()


def pieces(content, chunked, ending):
    """What is sent of the content, and what would end it."""
    if chunked:
        whole = chunk(content)
        return (whole + b"0\r\n\r\n", b"") if ending == "whole" else (whole, b"0\r\n\r\n")
    return (content, b"") if ending == "whole" else (content[:-1], content[-1:])


def variant(path, evil, chunked, ending, expect=False):
    fields = KEY if path == "/pay" else []

    def run(stand, token):
        target, signed = f"{path}?t={token}", order(token)
        content = changed(token) if evil else signed
        stand.promise(token, "POST", target, signed, fields, path == "/upload")
        stand.promises[token].broken = True
        framing = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", len(content))
        sent = [("Host", "interop.test"), FORM, *fields, framing,
                *stand.proof("POST", target, signed, fields)]
        if expect:
            sent.append(("Expect", "100-continue"))
        first, rest = pieces(content, chunked, ending)
        with stand.connect() as client:
            client.send(head("POST", target, sent))
            answer = deliver(client, first, ending)
        if answer and answer.status < 300:
            return f"it was answered {answer.status}"
        return None

    return run


def digests(*members):
    """Whole, changed content, with what `Content-Digest` says of both."""
    def run(stand, token):
        target, signed, content = f"/pay?t={token}", order(token), changed(token)
        stand.promise(token, "POST", target, signed, KEY)
        stand.promises[token].broken = True
        said = {"signed": digest_member(signed), "sent": digest_member(content),
                "none": "md5=:AAAA:"}
        proof = stand.proof("POST", target, signed, KEY)[:-1]
        values = [("Content-Digest", ", ".join(said[name] for name in member.split()))
                  for member in members]
        answer = stand.ask("POST", target, [FORM, *KEY, *proof, *values], content)
        if answer and answer.status < 300:
            return f"it was answered {answer.status}"
        return None

    return run


def as_signed(stand, token):
    """May be refused; it is here since some applications execute chunked content as none."""
    post("/upload", chunked=True, streamed=True)(stand, token)


def deliver(client, first, ending):
    """Sends what there is and ends as the name says; the answer, where one can come."""
    if ending == "dripped":
        for place in range(len(first)):
            client.send(first[place:place + 1])
    else:
        client.send(first)
    if ending == "closed":
        client.close()
        return None
    if ending == "reset":
        client.reset()
        return None
    if ending == "half-closed":
        client.half_close()
    return client.answer("POST")


def rows():
    for path, evil, chunked, ending in itertools.product(
        ["/pay", "/upload"], [True, False], [False, True], ENDINGS
    ):
        if not evil and ending in ("whole", "dripped"):
            continue
        group = "held content" if path == "/pay" else "streamed content"
        what = "changed" if evil else "cut short"
        framing = "chunked" if chunked else "length"
        yield Attack(group, f"{what}, {framing}, {ending}", variant(path, evil, chunked, ending))
    for path, group in [("/pay", "held content"), ("/upload", "streamed content")]:
        for ending in ["kept back", "half-closed"]:
            yield Attack(
                group, f"changed, length, {ending}, Expect",
                variant(path, True, False, ending, expect=True),
            )


def one_byte(place):
    """Content that is too large for memory, with another byte at one place."""
    def run(stand, token):
        target, signed = f"/pay?t={token}", order(token) + b"&x=" + b"y" * 600 * 1024
        content = bytearray(signed)
        content[place] ^= 1
        stand.promise(token, "POST", target, signed, KEY)
        stand.promises[token].broken = True
        proof = stand.proof("POST", target, signed, KEY)
        answer = stand.ask("POST", target, [FORM, *KEY, *proof], bytes(content))
        if answer and answer.status < 300:
            return f"it was answered {answer.status}"
        return None

    return run


def too_large(chunked):
    """More than the rule's limit, as it was signed."""
    def run(stand, token):
        target, content = f"/pay?t={token}", order(token) + b"&x=" + b"y" * (1 << 20)
        stand.promise(token, "POST", target, content, KEY)
        stand.promises[token].broken = True
        framing = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", len(content))
        body = chunk(content) + b"0\r\n\r\n" if chunked else content
        with stand.connect() as client:
            client.send(head("POST", target, [
                ("Host", "a"), FORM, *KEY, framing, *stand.proof("POST", target, content, KEY),
            ]) + body)
            client.answer("POST")

    return run


ATTACKS = [
    *rows(),
    Attack("held content", "600 KiB, another first byte", one_byte(3)),
    Attack("held content", "600 KiB, another last byte", one_byte(-1)),
    Attack("held content", "more than the limit, length", too_large(False)),
    Attack("held content", "more than the limit, chunked", too_large(True)),
    Attack("streamed content", "as signed, chunked, whole", as_signed),
    *(Attack("held content", f"whole, Content-Digest {members}", digests(*members))
      for members in [(), ("signed",), ("sent",), ("signed sent",), ("sent signed",),
                      ("signed", "sent"), ("sent", "signed"), ("none",)]),
]
