"""Changes the structure of HTTP messages, the way that people do who smuggle requests."""

BITS = [
    b"\r\n", b"\r", b"\n", b"\r\n\r\n", b" ", b"\t", b"\x0b", b"\x0c", b"\x00", b"\x7f", b"\x85",
    b"\xa0", b"\xff", b":", b";", b",", b"=", b'"', b"\\", b"%", b"%2f", b"%00", b"#", b"?", b"@",
    b"*", b"/", b"//", b"..", b"+", b"-", b"0", b"0x", b"_", b"5", b"f", b"http://", b"https://",
]
FIELDS = [
    b"Content-Length: 5", b"Content-Length: 0", b"Content-Length: +5", b"Content-Length: 5, 5",
    b"Content-Length: 05", b"Content-Length: 18446744073709551621", b"Content-Length : 5",
    b"Content-Length: 9223372036854775807", b"Content_Length: 5", b"Content-Length:",
    b"Content-Length: 5 5", b"Content-Length: 0x5", b"content-length:5", b"Content-Length:\t5 ",
    b"Transfer-Encoding: chunked", b"Transfer-Encoding: Chunked", b"transfer-encoding:chunked",
    b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: chunked, identity", b"Transfer-Encoding: identity",
    b"Transfer-Encoding: ,chunked", b"Transfer-Encoding: chunked,", b"Transfer-Encoding:",
    b"Transfer-Encoding: \x0bchunked", b"Transfer-Encoding: chunked;q=1", b"Transfer_Encoding: x",
    b'Transfer-Encoding: "chunked"', b"Transfer-Encoding : chunked", b" Transfer-Encoding: chunked",
    b"Transfer-Encoding: x\r\n chunked", b"Host: a.test", b"Host: a.test:80", b"Host:",
    b"Host: a.test@b.test", b"Host: [::1]", b"Host: [::1]:8080", b"Host: a.test/x", b"Host: a b",
    b"Host: a.test:99999", b"Host: [::1", b"Host: a%2eb", b"Host: [1::2::3]", b"Host: 1.2.3.4:",
    b"Connection: close", b"Connection: keep-alive", b"Connection: close, x", b"Connection: x,,y",
    b"Connection: content-length", b"Connection: transfer-encoding", b"Connection: TE, trailers",
    b"TE: trailers", b"Trailer: X", b"Expect: 100-continue", b"Expect: x", b"Upgrade: websocket",
    b"X: a\r\n b", b"X: \r\n\tb", b"X;y: z", b"X", b": y", b"X: \x00", b"X: y\x7f", b"X:\xff",
    b"Cookie: a=b", b"Date: x", b"X-Y: z  ", b"Keep-Alive: timeout=5", b"Max-Forwards: 0",
]
TARGETS = [
    b"/", b"*", b"/a?b#c", b"http://a.test/", b"http://a.test", b"http://A.TEST:80/x?y",
    b"http://b.test/", b"https://a.test/", b"http://u@a.test/", b"a.test:80", b"//a/b", b"/a b",
    b"/%", b"/%zz", b"/a%2f..", b"/a/../b", b"/\\", b"/{}", b"/a|b", b"/\x7f", b"/\xc3\xa9", b"",
    b"http://", b"http:///x", b"http://[::1]/", b"http://a.test?x", b"ftp://a.test/", b"/a;b=c",
    b"http://a.test/%41?%", b"x/y", b"?x", b"/?x=%2", b"http:a.test", b"HTTP://a.test/", b"/a?b?c",
]
VERSIONS = [
    b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"HTTP/0.9", b"http/1.1", b"HTTP/1.1 ",
    b"HTTP/11", b"HTTP/1.", b"HTTP/01.1", b"", b"HTTP/1.10", b"HTTPS/1.1", b"HTTP /1.1",
]
METHODS = [
    b"GET", b"POST", b"PUT", b"HEAD", b"OPTIONS", b"get", b"CONNECT", b"TRACE", b"M-SEARCH",
    b"G@T", b"", b"PATCH", b"DELETE", b"QUERY", b"A" * 33,
]
CHUNKS = [
    b"5\r\nhello\r\n", b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"5;a=b\r\nhello\r\n",
    b"05\r\nhello\r\n", b'5;a="b;c"\r\nhello\r\n', b"5 ;a\r\nhello\r\n", b"5; a = b\r\nhello\r\n",
    b"5\r\nhello", b"5\nhello\r\n", b"+5\r\nhello\r\n", b"0x5\r\nhello\r\n", b"5\r\nhello!\r\n",
    b"5;\r\nhello\r\n", b"FFFFFFFFFFFFFFFFF\r\n", b"8000000000000000\r\n", b"7fffffffffffffff\r\nx",
    b"\r\n", b"-0\r\n", b"000000000000000000000005\r\nhello\r\n", b"5\r\nhello\n", b"5\rhello\r\n",
    b" 5\r\nhello\r\n", b"5 \r\nhello\r\n", b'5;a="\r\n"\r\nhello\r\n', b"5;=b\r\nhello\r\n",
    b"00\r\n\r\n", b"A\r\n", b"0\r\nContent-Length: 5\r\n\r\n", b"0\r\n x\r\n\r\n",
    b"0\r\nX\r\n\r\n", b"0;a\r\n\r\n", b'5;a="\\"b"\r\nhello\r\n', b"a\r\n0123456789\r\n",
    b"5;a;b=c\r\nhello\r\n", b"5\t\r\nhello\r\n",
]
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n"


def mutated(random, octets):
    """The message with one to four changes."""
    for _ in range(random.choice([1, 1, 1, 2, 2, 3, 4])):
        octets = random.choice(CHANGES)(random, octets)
    return octets[:6000]


def split(octets):
    """The lines of the first head, and what is behind it."""
    head, gap, rest = octets.partition(b"\r\n\r\n")
    return head.split(b"\r\n"), gap + rest


def joined(lines, rest):
    return b"\r\n".join(lines) + rest


def bit(random, octets):
    place = random.randrange(len(octets) + 1)
    return octets[:place] + random.choice(BITS) + octets[place:]


def flip(random, octets):
    if not octets:
        return octets
    place = random.randrange(len(octets))
    return octets[:place] + bytes([random.randrange(256)]) + octets[place + 1 :]


def cut(random, octets):
    place = random.randrange(len(octets) + 1)
    end = min(len(octets), place + random.choice([1, 1, 2, 5, 40]))
    return octets[:place] + octets[end:]


def truncate(random, octets):
    return octets[: random.randrange(len(octets) + 1)]


def add_field(random, octets):
    lines, rest = split(octets)
    lines.insert(random.randrange(1, len(lines) + 1), random.choice(FIELDS))
    return joined(lines, rest)


def repeat_field(random, octets):
    lines, rest = split(octets)
    lines.insert(random.randrange(1, len(lines) + 1), random.choice(lines))
    return joined(lines, rest)


def drop_field(random, octets):
    lines, rest = split(octets)
    del lines[random.randrange(len(lines))]
    return joined(lines, rest)


def swap_fields(random, octets):
    lines, rest = split(octets)
    head, fields = lines[:1], lines[1:]
    random.shuffle(fields)
    return joined(head + fields, rest)


def space_field(random, octets):
    lines, rest = split(octets)
    place = random.randrange(len(lines))
    name, colon, value = lines[place].partition(b":")
    pads = [b"", b" ", b"\t", b"  ", b"\x0b", b"\r\n ", b"\x0c"]
    pad = [random.choice(pads) if random.random() < 0.4 else b"" for _ in range(4)]
    lines[place] = pad[0] + name + pad[1] + colon + pad[2] + value + pad[3]
    return joined(lines, rest)


def line_end(random, octets):
    pieces = octets.split(b"\r\n")
    place = random.randrange(len(pieces))
    end = random.choice([b"\n", b"\r", b"\n\r", b"\r\r\n", b"\r\n\r\n", b"\r\n "])
    return b"\r\n".join(pieces[:place] + [pieces[place] + end]) + b"\r\n".join(pieces[place + 1 :])


def start_line(random, octets):
    lines, rest = split(octets)
    parts = (lines[0].split(b" ") + [b"", b"", b""])[:3]
    which = random.randrange(4)
    if which < 3:
        parts[which] = random.choice([METHODS, TARGETS, VERSIONS][which])
    gap = random.choice([b" "] * 8 + [b"  ", b"\t", b""])
    lines[0] = parts[0] + b" " + parts[1] + gap + parts[2]
    return joined(lines, rest)


def status_line(random, octets):
    lines, rest = split(octets)
    status = random.choice([b"200", b"204", b"304", b"103", b"100", b"101", b"599", b"600", b"20"])
    reason = random.choice([b" OK", b"", b" ", b" \xff", b"  x", b" \x00"])
    lines[0] = random.choice(VERSIONS[:5]) + b" " + status + reason
    return joined(lines, rest)


def chunk(random, octets):
    lines, rest = split(octets)
    parts = rest[4:].split(b"\r\n")
    place = random.randrange(len(parts) + 1)
    head = b"\r\n".join(parts[:place])
    behind = head + (b"\r\n" if place else b"") + random.choice(CHUNKS)
    return joined(lines, b"\r\n\r\n" + behind + b"\r\n".join(parts[place:]))


def chunked_content(random, octets):
    lines, _ = split(octets)
    lines.insert(random.randrange(1, len(lines) + 1), b"Transfer-Encoding: chunked")
    content = b"".join(random.choice(CHUNKS) for _ in range(random.randrange(4)))
    return joined(lines, b"\r\n\r\n" + content + b"0\r\n\r\n")


def follow(random, octets):
    return octets + random.choice([SMUGGLED, SMUGGLED[:9], b"\r\n" + SMUGGLED, octets])


CHANGES = [
    bit, flip, cut, truncate, add_field, add_field, repeat_field, drop_field, swap_fields,
    space_field, line_end, start_line, start_line, status_line, chunk, chunk, chunked_content,
    follow,
]
