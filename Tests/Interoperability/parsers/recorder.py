#!/usr/bin/env python3
"""A strict reader of what the gateway forwards; logs as backends.py does.

usage: recorder.py PORT LOG

It shares nothing with the gateway. A request that is not whole is logged with a `fault`.
"""
import hashlib
import json
import os
import re
import socketserver
import sys

log = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


class Fault(Exception):
    pass


class Recorder(socketserver.StreamRequestHandler):
    def line(self):
        line = self.rfile.readline(1 << 20)
        if not line.endswith(b"\r\n") or b"\r" in line[:-2]:
            raise Fault(f"line {line[:80]!r}")
        return line[:-2].decode("latin-1")

    def fields(self):
        fields = []
        while line := self.line():
            found = re.fullmatch(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([^\0\n]*)", line)
            if not found:
                raise Fault(f"field {line[:80]!r}")
            fields.append(found.groups())
        return fields

    def take(self, count):
        octets = self.rfile.read(count)
        if len(octets) < count:
            raise Fault("content ends early")
        return octets

    def content(self, fields):
        names = ("content-length", "transfer-encoding")
        framing = [pair for pair in fields if pair[0].lower() in names]
        if len(framing) > 1:
            raise Fault(f"framing {framing}")
        if not framing:
            return b""
        name, value = framing[0]
        if name.lower() == "content-length":
            return self.take(int(value))
        body = b""
        while size := int(self.line(), 16):
            body += self.take(size)
            if self.take(2) != b"\r\n":
                raise Fault("end of a chunk")
        self.fields()
        return body

    def handle(self):
        while True:
            try:
                if not self.rfile.peek(1):
                    return
                seen = {}
                found = re.fullmatch(r"(\S+) (\S+) HTTP/1\.1", self.line())
                if not found:
                    raise Fault("request line")
                seen = {"method": found[1], "target": found[2], "fields": self.fields()}
                body = self.content(seen["fields"])
                seen |= {"length": len(body), "sha256": hashlib.sha256(body).hexdigest()}
            except (Fault, ValueError, ConnectionError) as fault:
                os.write(log, json.dumps(seen | {"fault": str(fault)}).encode() + b"\n")
                return
            os.write(log, json.dumps(seen).encode() + b"\n")
            # Who asked can tell by it whether it gets the answer to another request.
            target = seen["target"].encode("latin-1")
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Target: " + target + b"\r\n\r\n")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


Server(("127.0.0.1", int(sys.argv[1])), Recorder).serve_forever()
