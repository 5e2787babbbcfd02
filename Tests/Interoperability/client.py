"""A client that writes exact bytes, keeps some back, and ends connections in every way."""
import socket
import struct

PATIENCE = 25.0


class Answer:
    def __init__(self, status, fields, content):
        self.status = status
        self.fields = fields
        self.content = content

    @property
    def reason(self):
        return self.fields.get("reason", "")


class Client:
    """One connection, to the gateway or to a server."""

    def __init__(self, connection):
        self.connection = connection
        self.connection.settimeout(PATIENCE)
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, octets):
        """Writes; a peer that has closed already is no error here."""
        try:
            self.connection.sendall(octets)
        except OSError:
            pass

    def half_close(self):
        try:
            self.connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.connection.close()

    def reset(self):
        """Ends the connection with RST; on a Unix socket that is a close with unread input."""
        if self.connection.family != socket.AF_UNIX:
            self.connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
        self.close()

    def more(self):
        try:
            octets = self.connection.recv(1 << 16)
        except OSError:
            octets = b""
        self.rest += octets
        return bool(octets)

    def line(self):
        while b"\n" not in self.rest:
            if not self.more():
                return b""
        line, self.rest = self.rest.split(b"\n", 1)
        return line.rstrip(b"\r")

    def take(self, count):
        while len(self.rest) < count and self.more():
            pass
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def answer(self, method="GET"):
        """The next final response, or None when the connection ended before it was whole."""
        while True:
            words = self.line().split(b" ", 2)
            if len(words) < 2 or not words[1].isdigit():
                return None
            fields = {}
            while line := self.line():
                name, _, value = line.decode("latin-1").partition(":")
                fields[name.lower()] = value.strip()
            if int(words[1]) >= 200:
                return Answer(int(words[1]), fields, self.content(fields, method))

    def content(self, fields, method):
        if method == "HEAD":
            return b""
        if "chunked" in fields.get("transfer-encoding", ""):
            whole = b""
            while size := int(self.line().split(b";")[0] or b"0", 16):
                whole += self.take(size)
                self.line()
            self.line()
            return whole
        if "content-length" in fields:
            return self.take(int(fields["content-length"]))
        while self.more():
            pass
        whole, self.rest = self.rest, b""
        return whole


def head(method, target, fields, version="1.1"):
    """A request's head; fields are pairs, written as they are."""
    lines = [f"{method} {target} HTTP/{version}"]
    lines += [f"{name}: {value}" for name, value in fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def chunk(octets):
    return b"%x\r\n%s\r\n" % (len(octets), octets)
