"""A client and an origin in one thread: at each moment one of three parties has something to do.

So the gateway gets the same events in the same order in every run, one at a time, however busy the
machine is.
"""
import json
import select
import socket
import ssl

from failure import Failure
from signed import (
    DATA, END_HEADERS, END_STREAM, HEADERS, HOST, HTTP2, PREFACE, STATUS_200, Frames, frame, text,
)

ENDPOINTS = "/.well-known/app-attest"
PATIENCE = 120
# As nginx answers. With a Date, the gateway adds none, and no second that ends changes a count.
ANSWER = (
    b"HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
    b"Content-Type: text/plain\r\nContent-Length: 64\r\nConnection: keep-alive\r\n\r\n"
) + b"x" * 64
# A piece of an upload: less than the gateway ever reads at once. How much that is depends on time.
PIECE = 2048

# As a gRPC message comes: not compressed, five bytes (gRPC over HTTP/2, "Length-Prefixed-Message").
MESSAGE = b"\0\0\0\0\5hello"


def field(name, value):
    """A field that no table keeps (RFC 7541 §6.2.2)."""
    return b"\x00" + text(name) + text(value)


def has_come(connection):
    if not select.select([connection], [], [], PATIENCE)[0]:
        raise Failure("the gateway does not answer", "see the end of gateway.out with --profiles")


class Origin:
    """Answers each request that the gateway sends."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connection, self.inbox = None, b""

    def close(self):
        for one in (self.connection, self.listener):
            if one:
                one.close()

    def _receive(self):
        if self.connection is None:
            has_come(self.listener)
            self.connection = self.listener.accept()[0]
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        has_come(self.connection)
        more = self.connection.recv(1 << 17)
        if not more:
            # A connection that the gateway did not keep.
            self.connection.close()
            self.connection, self.inbox = None, b""
        self.inbox += more

    def take_head(self):
        while b"\r\n\r\n" not in self.inbox:
            self._receive()
        self.inbox = self.inbox.partition(b"\r\n\r\n")[2]

    def take(self, count):
        while len(self.inbox) < count:
            self._receive()
        self.inbox = self.inbox[count:]

    def answer(self):
        self.connection.sendall(ANSWER)


class CallOrigin:
    """Answers each gRPC call that the gateway sends over one HTTP/2 connection."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.frames, self.stream = None, None

    def close(self):
        if self.frames:
            self.frames.connection.close()
        self.listener.close()

    def take_call(self):
        if self.frames is None:
            has_come(self.listener)
            connection = self.listener.accept()[0]
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.frames = Frames(connection)
            connection.sendall(self.frames.greeting)
            connection.recv(len(PREFACE), socket.MSG_WAITALL)
        self.stream = None
        while self.stream is None:
            has_come(self.frames.connection)
            for kind, flags, stream, _ in self.frames.take():
                if kind in (DATA, HEADERS) and flags & END_STREAM:
                    self.stream = stream

    def answer(self):
        head = bytes([STATUS_200]) + field(b"content-type", b"application/grpc")
        self.frames.connection.sendall(
            frame(HEADERS, END_HEADERS, self.stream, head)
            + frame(DATA, 0, self.stream, MESSAGE)
            + frame(HEADERS, END_HEADERS | END_STREAM, self.stream, field(b"grpc-status", b"0"))
        )


class Client:
    """One connection to the gateway over HTTP/1.1, plain or under TLS."""

    def __init__(self, port, origin, certificate=None):
        self.origin, self.inbox = origin, b""
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if certificate:
            context = ssl.create_default_context(cafile=certificate)
            context.set_ciphers("ECDHE+AESGCM")
            self.connection = context.wrap_socket(self.connection, server_hostname="127.0.0.1")

    def close(self):
        self.connection.close()

    def _receive(self):
        is_decrypted = isinstance(self.connection, ssl.SSLSocket) and self.connection.pending()
        if not is_decrypted:
            has_come(self.connection)
        more = self.connection.recv(1 << 16)
        if not more:
            raise Failure("the gateway closed a connection", "see gateway.out with --profiles")
        self.inbox += more

    def _take_answer(self, statuses):
        """The fields and the content of the next response."""
        while b"\r\n\r\n" not in self.inbox:
            self._receive()
        head, _, rest = self.inbox.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        fields = {name.lower(): value for name, _, value in (x.partition(": ") for x in lines)}
        count = int(fields["content-length"])
        while len(rest) < count:
            self._receive()
            rest = self.inbox.partition(b"\r\n\r\n")[2]
        self.inbox = rest[count:]
        if int(first.split()[1]) not in statuses:
            raise Failure(f"{first}: {rest[:300]!r}", "see what the gateway answered")
        return fields, rest[:count]

    def _send_head(self, method, target, fields):
        lines = [f"{method} {target} HTTP/1.1", f"Host: {HOST.decode()}"]
        lines += [f"{name}: {value}" for name, value in fields.items()]
        self.connection.sendall("\r\n".join([*lines, "", ""]).encode())

    def call(self, path, fields):
        """Calls an endpoint of the gateway's own."""
        self._send_head("POST", ENDPOINTS + path, {"Content-Length": "0", **fields})
        return json.loads(self._take_answer((200, 201))[1])

    def get(self, target, fields):
        """One request that the origin answers; the fields of the response."""
        self._send_head("GET", target, fields)
        self.origin.take_head()
        self.origin.answer()
        return self._take_answer((200,))[0]

    def put(self, target, byte_count):
        """An upload whose pieces wait for each other."""
        self._send_head("PUT", target, {"Content-Length": str(byte_count)})
        self.origin.take_head()
        for _ in range(byte_count // PIECE):
            self.connection.sendall(bytes(PIECE))
            self.origin.take(PIECE)
        self.origin.answer()
        self._take_answer((200,))


class Client2(HTTP2):
    """One connection over HTTP/2, one stream after the other."""

    def __init__(self, port, origin):
        self.origin = origin
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(PATIENCE)
        super().__init__(connection)

    def close(self):
        self.connection.close()

    def get(self, target):
        # GET, http, then the path and the host that no table keeps.
        head = b"\x82\x86\x04" + text(target.encode()) + b"\x01" + text(HOST)
        self.send(head)
        self.origin.take_head()
        self.origin.answer()
        self._await()

    def call(self, target):
        """A unary gRPC call; the origin is a CallOrigin."""
        # POST, http, then what no table keeps.
        head = b"\x83\x86\x04" + text(target.encode()) + b"\x01" + text(HOST)
        head += field(b"content-type", b"application/grpc") + field(b"te", b"trailers")
        self.send(head, MESSAGE)
        self.origin.take_call()
        self.origin.answer()
        self._await()

    def _await(self):
        while not self.read():
            pass
