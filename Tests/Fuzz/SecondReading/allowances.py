"""Where Portcullis may differ from the second reading, each with its reason and an example.

Portcullis may refuse what the second reading takes, when it says one of the reasons below and what
has to stand in the octets for it does. That it takes what the second reading refuses is allowed in
one way only: a target of octets that RFC 3986 has no place for, which clients send all the same.
With these, `reading` reads once more, and nothing else may differ.

Each example must differ in the way that is allowed, or the allowance has become untrue.
"""

import re
from typing import NamedTuple


class Allowance(NamedTuple):
    pattern: bytes
    why: str
    example: bytes
    kind: str = "q"


def get(target=b"/", fields=b"", host=b"a.test", method=b"GET", version=b"HTTP/1.1", behind=b""):
    start = method + b" " + target + b" " + version + b"\r\nHost: " + host + b"\r\n"
    return start + fields + b"\r\n" + behind


def chunked(behind):
    return get(fields=b"Transfer-Encoding: chunked\r\n", behind=behind)


BOUND = "a bound, which RFC 9110 §5.4 and RFC 9112 §3 leave to the recipient"
PATH = "a path that two servers may read in two ways is not matched against rules"
HOST = "no host in DNS has sub-delims, escapes or empty labels, and two readers can differ in them"
VERSION = "no such version exists (RFC 9110 §2.5), so whoever sends it is probing"
CODING = "several lines and empty members have hidden chunked from other readers"
TWIN = "servers that make variables of fields take it for its twin"
SPACE = "white space behind a framing field of a response is refused, not taken off"
LAST = b"0\r\n\r\n"
CODED = b"Transfer-Encoding: chunked\r\n"

STRICTER = {
    "head-too-long": Allowance(
        rb"(?s).{16384}", BOUND, get(fields=b"X: " + b"x" * 17000 + b"\r\n")
    ),
    "target-too-long": Allowance(rb"(?s).{8192}", BOUND, get(b"/" + b"x" * 8192)),
    "method-too-long": Allowance(rb"[^ \r\n]{33}", BOUND, get(method=b"M" * 33)),
    "fields-too-many": Allowance(
        rb"(?:\r\n[^\r\n]*){101}", BOUND, get(fields=b"X: y\r\n" * 101)
    ),
    "field-name-too-long": Allowance(
        rb"\r\n[^:\r\n]{257}", BOUND, get(fields=b"x" * 257 + b":\r\n")
    ),
    "chunk-extensions-too-long": Allowance(
        rb"(?s).{4096}",
        "RFC 9112 §7.1.1 asks for a bound",
        chunked(b"1;a=" + b"x" * 4100 + b"\r\ny\r\n" + LAST),
    ),
    "trailers-too-long": Allowance(
        rb"(?s).{4096}|(?:\r\n[^\r\n]*){33}", BOUND, chunked(b"0\r\n" + b"X: y\r\n" * 33 + b"\r\n")
    ),
    "chunk-size-overflow": Allowance(
        rb"\r\n0[0-9a-fA-F]{16}",
        "digits that no sender needs hide a size from other readers",
        chunked(b"0" * 16 + b"1\r\nx\r\n" + LAST),
    ),
    "version-unsupported": Allowance(rb"HTTP/1\.[2-9]", VERSION, get(version=b"HTTP/1.2")),
    "status-line-syntax": Allowance(
        rb"HTTP/1\.[2-9]", VERSION, b"HTTP/1.2 204 No Content\r\n\r\n", "g"
    ),
    "method-refused": Allowance(
        rb"TRACE ", "it tells a client what others wrote (RFC 9110 §9.3.8)", get(method=b"TRACE")
    ),
    "path-encoded-slash": Allowance(rb"(?i)%2f", PATH, get(b"/a%2Fb")),
    "path-encoded-backslash": Allowance(rb"(?i)%5c", PATH, get(b"/a%5cb")),
    "path-control": Allowance(rb"(?i)%[01][0-9a-f]|%7f", PATH, get(b"/a%00")),
    "path-dot-segment": Allowance(
        rb"(?i)[/\\fc](\.|%2e){1,2}([/\\; ?]|%2f|%5c|%3b)", PATH, get(b"/a/../b")
    ),
    "path-encoding": Allowance(rb"(?i)%[89a-f][0-9a-f]", PATH, get(b"/%ff")),
    "host-invalid": Allowance(
        rb"(?im)^Host:(.*([!$&'()*+,;=%]|\.\.)|[ \t]*\.)", HOST, get(host=b"a%2eb")
    ),
    "target-authority": Allowance(
        rb"(?i)http://([^/?]*([!$&'()*+,;=%]|\.\.)|\.)", HOST, get(b"http://a$b/", host=b"a$b")
    ),
    "method-case": Allowance(
        rb"[a-z][A-Za-z-]* ", "some servers run `get` as GET", get(method=b"get")
    ),
    "connection-nomination": Allowance(
        rb"(?im)^connection[ \t]*:",
        "what every hop needs is not for one hop only (RFC 9110 §7.6.1)",
        get(fields=b"Connection: host\r\n"),
    ),
    "underscore-twin": Allowance(
        rb"(?im)^(content[!#$%&'*+.^_`|~]length|transfer[!#$%&'*+.^_`|~]encoding)[ \t]*:",
        TWIN,
        get(fields=b"Content_Length: 5\r\n"),
    ),
    "transfer-encoding-syntax": Allowance(
        rb"(?im)^transfer-encoding[ \t]*:.*,",
        CODING,
        get(fields=b"Transfer-Encoding: ,chunked\r\n", behind=LAST),
    ),
    "transfer-encoding-repeated": Allowance(
        rb"(?ims)^transfer-encoding[ \t]*:.*^transfer-encoding[ \t]*:",
        CODING,
        get(fields=CODED + b"Transfer-Encoding:\r\n", behind=LAST),
    ),
    "field-name-syntax": Allowance(
        rb"(?im)^(content-length|transfer-encoding)[ \t]+:",
        SPACE,
        b"HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n",
        "g",
    ),
    "expectation": Allowance(
        rb"(?im)^expect:", "417 is allowed (RFC 9110 §10.1.1)", get(fields=b"Expect: x\r\n")
    ),
    "field-repeated": Allowance(
        rb"(?im)^(expect|authorization|content-type):",
        "a field of one value that stands twice (RFC 9110 §5.3)",
        get(fields=b"Authorization: a\r\n" * 2),
    ),
    "connection-option": Allowance(
        rb"(?im)^connection[ \t]*:",
        "an option is a token (RFC 9110 §7.6.1), and there are not many",
        get(fields=b"Connection: a b\r\n"),
    ),
}
WIDE_TARGET = "wide-target"
WIDE_EXAMPLE = get(b"/a|b")


def is_stricter(reason, octets):
    return reason in STRICTER and re.search(STRICTER[reason].pattern, octets) is not None


def examples():
    """What each allowance must be used for: its name, a kind and octets."""
    for reason, one in STRICTER.items():
        yield reason, one.kind, one.example
    yield WIDE_TARGET, "q", WIDE_EXAMPLE
