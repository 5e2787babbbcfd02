"""A client that sends signed requests over HTTP/1.1 or HTTP/2, the same in all else.

wrk speaks no HTTP/2, and h2load has no fields that differ from request to request. Each connection
has one request under way. Only the gateway's processor time is measured, so that a slow client does
no harm.
"""
import selectors
import socket

from failure import Failure

HOST = b"bench.test"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
# `:status: 200` of the static table (RFC 7541, appendix A).
STATUS_200 = 0x88


def frame(kind, flags, stream, payload=b""):
    return (
        len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
    )


def text(value):
    """A string of HPACK without Huffman's code (RFC 7541 §5.2)."""
    count = len(value)
    if count < 127:
        return bytes([count]) + value
    rest, coded = count - 127, bytearray([127])
    while rest >= 128:
        coded.append(rest % 128 + 128)
        rest //= 128
    return bytes(coded) + bytes([rest]) + value


def fields(key, assertion):
    """The head of a request: GET, http, the path and fields that no table keeps."""
    return (
        b"\x82\x86\x04" + text(b"/verified") + b"\x01" + text(HOST)
        + b"\x00" + text(b"app-attest-key-id") + text(key)
        + b"\x00" + text(b"app-attest-assertion") + text(assertion)
    )


class HTTP1:
    def __init__(self, connection):
        self.connection, self.inbox = connection, b""

    @staticmethod
    def prepared(key, assertion):
        return (
            b"GET /verified HTTP/1.1\r\nHost: " + HOST + b"\r\nApp-Attest-Key-Id: " + key
            + b"\r\nApp-Attest-Assertion: " + assertion + b"\r\n\r\n"
        )

    def send(self, request):
        self.connection.sendall(request)

    def read(self):
        """Takes what has come; whether the response is whole."""
        self.inbox += received(self.connection)
        head, found, content = self.inbox.partition(b"\r\n\r\n")
        if not found:
            return False
        if not head.startswith(b"HTTP/1.1 200"):
            raise Failure(f"a verified request failed: {head[:200]!r}", "look at what it says")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        if len(content) < length:
            return False
        self.inbox = content[length:]
        return True


class Frames:
    """The frames of one connection over HTTP/2."""

    def __init__(self, connection):
        self.connection, self.inbox = connection, b""
        # INITIAL_WINDOW_SIZE and the connection's window as large as they can be.
        window = (0x7FFFFFFF).to_bytes(4, "big")
        grown = (0x7FFFFFFF - 65535).to_bytes(4, "big")
        self.greeting = frame(SETTINGS, 0, 0, b"\x00\x04" + window) + frame(WINDOW, 0, 0, grown)

    def take(self):
        """The frames that have come: kind, flags, stream and payload."""
        self.inbox += received(self.connection)
        while len(self.inbox) >= 9:
            end = 9 + int.from_bytes(self.inbox[:3], "big")
            if len(self.inbox) < end:
                break
            kind, flags, payload = self.inbox[3], self.inbox[4], self.inbox[9:end]
            stream = int.from_bytes(self.inbox[5:9], "big")
            self.inbox = self.inbox[end:]
            if kind in (SETTINGS, PING) and not flags & ACK:
                self.connection.sendall(frame(kind, ACK, 0, payload if kind == PING else b""))
            yield kind, flags, stream, payload


class HTTP2(Frames):
    def __init__(self, connection):
        super().__init__(connection)
        self.stream, self.has_status = 1, False
        connection.sendall(PREFACE + self.greeting)

    @staticmethod
    def prepared(key, assertion):
        return fields(key, assertion)

    def send(self, request, content=None):
        ends = END_STREAM if content is None else 0
        frames = frame(HEADERS, ends | END_HEADERS, self.stream, request)
        if content is not None:
            frames += frame(DATA, END_STREAM, self.stream, content)
        self.connection.sendall(frames)
        self.stream += 2

    def read(self):
        is_whole = False
        for kind, flags, _, payload in self.take():
            is_refused = kind == HEADERS and not self.has_status and payload[0] != STATUS_200
            if is_refused or kind in (RESET, GOAWAY):
                raise Failure(f"a request failed: {payload[:200]!r}", "look at the log")
            if kind == HEADERS:
                self.has_status = True
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                is_whole, self.has_status = True, False
        return is_whole


def received(connection):
    piece = connection.recv(65536)
    if not piece:
        raise Failure("the gateway has closed a connection", "look at its log")
    return piece


def send(protocol, port, connections, proofs):
    """Sends each request once."""
    waiting = [protocol.prepared(*proof) for proof in reversed(proofs)]
    with selectors.DefaultSelector() as selector:
        under_way = []
        try:
            for _ in range(min(connections, len(waiting))):
                connection = socket.create_connection(("127.0.0.1", port))
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                under_way.append(connection)
                client = protocol(connection)
                selector.register(connection, selectors.EVENT_READ, client)
                client.send(waiting.pop())
            left = len(proofs)
            while left:
                ready = selector.select(60)
                if not ready:
                    raise Failure("the gateway does not answer", "run again on an idle machine")
                for key, _ in ready:
                    if not key.data.read():
                        continue
                    left -= 1
                    if waiting:
                        key.data.send(waiting.pop())
        finally:
            for connection in under_way:
                connection.close()


def proofs(file, count):
    """The first so many requests that were signed."""
    with open(file, "rb") as lines:
        return [line.split()[:2] for line, _ in zip(lines, range(count))]
