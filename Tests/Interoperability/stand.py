"""A backend behind a gateway of its own, and what the two were asked and did."""
import itertools
import json
import os
import re
import socket
import threading
import time

from client import Client, head
from device import digest_member, request_lines
from gateway import Gateway
from processes import Processes, free_port


TOKEN = re.compile(r"t\d{4}z")


class Promise:
    """What was signed: the one request that may be executed for a token, once."""

    def __init__(self, method, target, content, fields=(), streamed=False):
        self.method = method
        self.target = target
        self.content = content
        self.fields = dict(fields)
        self.streamed = streamed
        # Set for requests whose content is sent broken: those that must not be executed.
        self.broken = False


class Stand:
    """Tokens tell attacks apart: each request of an attack carries its token in the query or the
    content, so that attacks run side by side and each line in the log has its owner.
    """

    def __init__(self, backend, program, folder, devices, apple=None):
        self.backend = backend
        self.folder = os.path.join(folder, re.sub("[^a-z]", "", backend.name.lower()))
        os.mkdir(self.folder)
        os.chmod(self.folder, 0o777)
        self.log = os.path.join(self.folder, "log")
        with open(self.log, "w", encoding="utf-8"):
            os.chmod(self.log, 0o666)
        self.numbers = itertools.count(1)
        self.promises = {}
        # More tokens of an attack that sends several signed requests.
        self.kin = {}
        self.spare = list(devices)
        self.test_device = self.spare.pop()
        self.risky = [device for device in devices if device.metric is not None]
        self.spare = [device for device in self.spare if device.metric is None]
        # Apple's services, where they are played.
        self.apple = apple
        self.silent_gateway = None
        self.challenges = []
        self.lock = threading.Lock()
        self.gateway = None
        self.others = {}
        self.processes = Processes(os.path.join(self.folder, "output"))
        try:
            self.begin(program, devices)
        except Exception:
            self.stop()
            raise

    def begin(self, program, devices):
        self.port = free_port()
        environment = self.backend.environment() | {"INTEROP_LOG": self.log}
        for command in self.backend.commands(self.port, self.folder):
            self.processes.start(command, environment)
        self.processes.wait_port(self.port, self.backend.name)
        self.gateway = Gateway(program, self.folder, self.port, devices,
                               apple=self.apple.section if self.apple else "",
                               http2=self.backend.http2)
        self.gateway.wait()
        self.program = program

    def stop(self):
        for gateway in [self.gateway, self.silent_gateway, *self.others.values()]:
            if gateway:
                gateway.stop()
        self.processes.stop()

    # What attacks use

    def token(self):
        with self.lock:
            return f"t{next(self.numbers):04}z"

    def device(self):
        """A key that signed nothing yet, so that no counter stands in another's way."""
        with self.lock:
            return self.spare.pop()

    def risky_device(self):
        """The same with a risk metric above the rules' limit."""
        with self.lock:
            return self.risky.pop()

    def challenge(self):
        with self.lock:
            if not self.challenges:
                self.challenges = self.gateway.challenges(32)
            return self.challenges.pop()

    def limited(self, limits, address="x-forwarded-for"):
        """Another gateway, with these settings."""
        with self.lock:
            if (limits, address) not in self.others:
                folder = os.path.join(self.folder, str(len(self.others)))
                os.mkdir(folder)
                other = Gateway(self.program, folder, self.port, [], limits, address,
                                http2=self.backend.http2)
                other.wait()
                self.others[limits, address] = other
            return self.others[limits, address]

    def silent(self):
        """Another gateway, for which Apple does not answer; it has keys of its own."""
        with self.lock:
            if not self.silent_gateway:
                folder = os.path.join(self.folder, "silent")
                os.mkdir(folder)
                spare = [self.spare.pop() for _ in range(4)]
                gateway = Gateway(self.program, folder, self.port, spare, apple=self.apple.silent,
                                  http2=self.backend.http2)
                gateway.spare = spare
                gateway.wait()
                self.silent_gateway = gateway
            return self.silent_gateway

    def connect(self):
        return self.gateway.connect()

    def direct(self):
        """A connection to the server itself, past the gateway."""
        return Client(socket.create_connection(("127.0.0.1", self.port)))

    def proof(self, method, target, content=b"", fields=None, device=None, signed=None,
              gateway=None):
        """The proof's fields for a request, by a key and a challenge of another gateway where one
        is given.

        `fields` are those that /pay signs; `signed` is client data of another form.
        """
        device = device or (gateway.spare.pop() if gateway else self.device())
        challenge = gateway.challenges(8)[0] if gateway else self.challenge()
        named = [("idempotency-key", dict(fields or {}).get("idempotency-key"))]
        if not target.startswith("/pay"):
            named = []
        lines = signed or request_lines(method, target, content, challenge, named)
        if callable(lines):
            lines = lines(challenge)
        return [
            ("App-Attest-Key-Id", device.key_id),
            ("App-Attest-Challenge", challenge),
            ("App-Attest-Assertion", device.assertion(lines)),
            ("Content-Digest", digest_member(content)),
        ]

    def promise(self, token, method, target, content=b"", fields=(), streamed=False):
        self.promises[token] = Promise(method, target, content, fields, streamed)

    def ask(self, method, target, fields=(), content=b"", version="1.1", host="interop.test",
            gateway=None):
        """Sends one whole request on a connection of its own; answers None without an answer."""
        framing = [("Content-Length", len(content))] if content else []
        hosts = [("Host", host)] if host is not None else []
        with (gateway or self).connect() as client:
            client.send(head(method, target, [*hosts, *fields, *framing], version) + content)
            return client.answer(method)

    def records(self):
        """All that the application has written, by token; a line is there when it is ended."""
        found = {}
        with open(self.log, "rb") as log:
            for line in log.read().decode("latin-1").split("\n")[:-1]:
                for token in set(TOKEN.findall(line)):
                    found.setdefault(token, []).append(json.loads(line))
        return found

    def records_of(self, token):
        """The same of one token. The lines of others, of which there are hundreds, are not read."""
        with open(self.log, "rb") as log:
            lines = log.read().decode("latin-1").split("\n")[:-1]
        return [json.loads(line) for line in lines if token in line]

    def settle(self):
        """Waits until nothing more is written: servers may run what was broken off late."""
        size, since = -1, time.monotonic()
        end = since + 20
        while time.monotonic() < min(since + 1.0, end):
            now = os.path.getsize(self.log)
            if now != size:
                size, since = now, time.monotonic()
            time.sleep(0.05)
