"""A second reading of HTTP/1.1 framing, written from RFC 9110 and RFC 9112 and from nothing else.

It exists to be compared with Portcullis, so it shares no code and no idea with it: whole messages
as `bytes`, regular expressions for the grammar, slow and obvious. It reads as a strict gateway:
where the RFC lets a recipient choose between mending and refusing, it refuses.
"""

import re
from dataclasses import dataclass, field


class Refused(Exception):
    """The octets are no message that a gateway may forward."""


class More(Exception):
    """The octets end inside a message."""


@dataclass
class Message:
    method: str = ""
    target: str = ""
    authority: str = ""
    framing: str = "none"
    persistent: bool = True
    fields: list = field(default_factory=list)
    body: str = ""
    trailers: list = field(default_factory=list)


TCHAR = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]"  # RFC 9110 §5.6.2
VALUE = rb"[\x21-\x7e\x80-\xff](?:[\t \x21-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?"  # §5.5
# The space before the colon is for a response: an intermediary takes it off (RFC 9112 §5.1).
REQUEST_FIELD = re.compile(rb"(%s+):[ \t]*(%s)?[ \t]*\Z" % (TCHAR, VALUE))
RESPONSE_FIELD = re.compile(rb"(%s+)[ \t]*:[ \t]*(%s)?[ \t]*\Z" % (TCHAR, VALUE))
# RFC 9112 §3: one space, no white space in the target.
REQUEST_LINE = re.compile(rb"(%s+) ([\x21-\x7e]+) HTTP/(\d)\.(\d)\Z" % TCHAR)
# RFC 9112 §4; a reason may be missing with its space, as many origins leave it out.
STATUS_LINE = re.compile(rb"HTTP/(\d)\.(\d) (\d{3})(?: ([\t \x21-\x7e\x80-\xff]*))?\Z")
# RFC 3986 §3.3, §3.4: path and query.
PCHAR = rb"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})"
ORIGIN = re.compile(rb"((?:/%s*)+)(\?(?:%s|[/?])*)?\Z" % (PCHAR, PCHAR))
# What is visible, for senders that escape less than RFC 3986 asks; see `allowances`.
WIDE = re.compile(rb"(/[^#?]*)(\?[^#]*)?\Z")
ABSOLUTE = re.compile(rb"([A-Za-z][A-Za-z0-9+\-.]*)://([^/?#]*)((?:/[^?#]*)?)(\?[^#]*)?\Z")
OCTET = rb"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
IPV4 = rb"%s\.%s\.%s\.%s" % ((OCTET,) * 4)
# RFC 3986 §3.2.2: a name of unreserved bytes, sub-delims and escapes, or a literal.
NAME = rb"(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})+"
AUTHORITY = re.compile(rb"(?:\[([0-9A-Fa-f:.]+)\]|(%s))(?::(\d*))?\Z" % NAME)
QUOTED = rb'"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t \x21-\x7e\x80-\xff])*"'
# RFC 9112 §7.1.1, with the white space that RFC 9110 §5.6.3 calls bad and has us read.
EXTENSION = rb"[ \t]*;[ \t]*%s+(?:[ \t]*=[ \t]*(?:%s+|%s))?" % (TCHAR, TCHAR, QUOTED)
CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]+)((?:%s)*)\Z" % EXTENSION)
# What a length may be, which others hold in a signed word, and what can't become one any more.
LARGEST, LARGER = 2**63 - 1, 2**64 - 1


def text(octets):
    """Each octet as the character of its number."""
    return octets.decode("latin-1")


def is_ipv6(octets):
    """RFC 4291 §2.2, by counting groups."""
    tail = re.search(rb"(?:^|:)(%s)\Z" % IPV4, octets)
    if tail:
        octets = octets[: tail.start(1)] + b"0:0"
    if octets.count(b"::") > 1 or b":::" in octets:
        return False
    head, gap, rest = octets.partition(b"::")
    groups = [part.split(b":") if part else [] for part in (head, rest)]
    if not all(re.match(rb"[0-9A-Fa-f]{1,4}\Z", one) for part in groups for one in part):
        return False
    count = len(groups[0]) + len(groups[1])
    return count < 8 if gap else count == 8


def is_authority(octets):
    match = AUTHORITY.match(octets)
    if not match or (match[1] is not None and not is_ipv6(match[1])):
        return False
    return not match[3] or int(match[3]) <= 65535


def same_host(one, other):
    """Whether two authorities of plain HTTP are the same (RFC 9110 §4.2.3)."""

    def parts(octets):
        match = AUTHORITY.match(octets)
        return (match[1] or match[2]).lower(), int(match[3] or 80)

    return parts(one) == parts(other)


def lines(octets, start):
    """The lines of a head from `start` up to its empty line, and the octet behind it."""
    found = []
    while True:
        end = octets.find(b"\r\n", start)
        line = octets[start:] if end < 0 else octets[start:end]
        # RFC 9112 §2.2: neither stands alone. The last CR may be half of a line's end.
        if b"\n" in line or b"\r" in (line[:-1] if end < 0 else line):
            raise Refused("line")
        if end < 0:
            raise More
        start = end + 2
        if not line:
            return found, start
        found.append(line)


def fields_of(field_lines, pattern=REQUEST_FIELD):
    found = []
    for line in field_lines:
        match = pattern.match(line)
        if not match:  # obs-fold, too: a gateway may answer 400 (RFC 9112 §5.2)
            raise Refused("field")
        found.append((match[1], match[2] or b""))
    return found


def values(fields, name):
    return [value for one, value in fields if one.lower() == name]


def members(all_values):
    """The members of a list field; recipients take empty ones (RFC 9110 §5.6.1.2)."""
    found = [one.strip(b" \t").lower() for value in all_values for one in value.split(b",")]
    return [one for one in found if one]


def framing_of(fields, version):
    """RFC 9112 §6.3, rules 3 to 7."""
    codings, lengths = values(fields, b"transfer-encoding"), values(fields, b"content-length")
    if codings:
        if version == 0 or lengths or members(codings) != [b"chunked"]:
            raise Refused("coding")
        return "chunked"
    if not lengths:
        return "none"
    if len(lengths) > 1 or not re.match(rb"\d+\Z", lengths[0]):
        raise Refused("length")
    if int(lengths[0]) > LARGEST:
        raise Refused("length")
    return "length %d" % int(lengths[0])


def is_persistent(fields, version):
    """RFC 9112 §9.3."""
    options = members(values(fields, b"connection"))
    if b"close" in options:
        return False
    return version == 1 or b"keep-alive" in options


def chunked(octets, start):
    """RFC 9112 §7.1: the content, the trailers, and the octet behind them."""
    content = b""
    while True:
        end = octets.find(b"\r\n", start)
        # A quoted string has no line's end in it, so the first one ends the line.
        if end < 0:
            partial_size(octets[start:])
            raise More
        match = CHUNK_LINE.match(octets[start:end])
        if not match or int(match[1], 16) > LARGEST:
            raise Refused("chunk")
        size, start = int(match[1], 16), end + 2
        if size == 0:
            found, start = lines(octets, start)
            return content, fields_of(found), start
        content += octets[start : start + size]
        start += size
        rest = octets[start : start + 2]
        if not b"\r\n".startswith(rest):
            raise Refused("chunk data")
        if len(rest) < 2:
            raise More
        start += 2


def partial_size(line):
    """The begin of a chunk's line must be able to become one."""
    endings = [b"", b"0", b"a", b";a", b'"', b'a"']
    if line.endswith(b"\r"):  # All that can follow is LF.
        line, endings = line[:-1], [b""]
    match = next(filter(None, (CHUNK_LINE.match(line + one) for one in endings)), None)
    if not match or (line and int(match[1], 16) > LARGER):
        raise Refused("chunk")


def head_of_request(octets, start, origin_form):
    """The message that a head announces, its version, and the octet behind the head."""
    found, end = lines(octets, start)
    match = REQUEST_LINE.match(found[0])
    if not match:
        raise Refused("request line")
    method, target, major, minor = match.groups()
    if major != b"1" or method == b"CONNECT":  # §2.5 of RFC 9110: 505; §9.3.6: no tunnel here
        raise Refused("request line")
    version = min(int(minor), 1)
    fields = fields_of(found[1:])
    hosts = values(fields, b"host")
    if len(hosts) > 1 or (not hosts and version == 1):
        raise Refused("host")  # RFC 9112 §3.2 ¶6
    if hosts and not is_authority(hosts[0]):
        raise Refused("host")
    authority = hosts[0] if hosts else b""
    absolute = ABSOLUTE.match(target)
    if target == b"*":
        if method != b"OPTIONS":
            raise Refused("target")
    elif absolute:
        scheme, asked, path, query = absolute.groups()
        # §4.2.4: no userinfo. §7.4: an https target came by another way than TLS.
        if scheme.lower() != b"http" or not is_authority(asked):
            raise Refused("target")
        if not origin_form.match((path or b"/") + (query or b"")):
            raise Refused("target")
        if hosts and not same_host(hosts[0], asked):
            raise Refused("host")  # §3.2.2 would take the target's; strict, by policy
        authority = asked
    elif not origin_form.match(target):
        raise Refused("target")
    message = Message(
        method=text(method),
        target=text(target),
        authority=text(authority),
        framing=framing_of(fields, version),
        persistent=is_persistent(fields, version),
        fields=[text(name + b":" + value) for name, value in fields],
    )
    return message, end


def read_requests(octets, origin_form=ORIGIN):
    """The complete messages, how it ends, and the message that is not complete."""
    found, start = [], 0
    while True:
        # RFC 9112 §2.2 ¶6: empty lines before a request; two at most, by policy.
        begin = start
        while octets.startswith(b"\r\n", start) and start < begin + 4:
            start += 2
        if start == len(octets) or (octets[start:] == b"\r" and start < begin + 4):
            return found, "idle", None
        try:
            message, start = head_of_request(octets, start, origin_form)
        except More:
            return found, "inside-head", None
        except (Refused, IndexError):
            return found, "rejected", None
        try:
            start = read_content(message, octets, start)
        except More:
            return found, "inside-body", message
        except Refused:
            return found, "aborted", message
        found.append(message)
        if not message.persistent:
            return found, "closed", None


def read_content(message, octets, start):
    if message.framing == "chunked":
        body, trailers, start = chunked(octets, start)
        message.body = text(body)
        message.trailers = [text(name + b":" + value) for name, value in trailers]
    elif message.framing.startswith("length"):
        count = int(message.framing[7:])
        if len(octets) - start < count:
            raise More
        message.body = text(octets[start : start + count])
        start += count
    return start


@dataclass
class Answer:
    end: str = "rejected"
    status: int = 0
    interim: int = 0
    framing: str = "none"
    body: str = ""
    trailers: list = field(default_factory=list)
    leftover: int = 0


def read_response(octets, method):
    """What an origin answers to a request until it closes; 101 was not asked for."""
    answer, start = Answer(), 0
    while True:
        try:
            found, start = lines(octets, start)
            match = STATUS_LINE.match(found[0])
            if not match or match[1] != b"1":
                return answer
            version, status = min(int(match[2]), 1), int(match[3])
            fields = fields_of(found[1:], RESPONSE_FIELD)
            if status < 100 or status == 101 or status > 599:  # RFC 9110 §15: five classes
                return answer
            framing = framing_of(fields, version)
        except (More, Refused, IndexError):
            return answer
        if status >= 200:
            break
        answer.interim += 1
    # Rules 1 and 8 of RFC 9112 §6.3.
    if method == "h" or status in (204, 304):
        framing = "none"
    elif framing == "none":
        framing = "until-close"
    answer.status, answer.framing, answer.end = status, framing, "complete"
    message = Message(framing=framing)
    try:
        if framing == "until-close":
            answer.body, start = text(octets[start:]), len(octets)
        else:
            start = read_content(message, octets, start)
            answer.body, answer.trailers = message.body, message.trailers
            answer.leftover = len(octets) - start
    except (More, Refused):
        answer.end = "aborted"
    return answer
