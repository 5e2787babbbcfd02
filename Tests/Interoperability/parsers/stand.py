"""A server, and the gateway in front of it, as processes."""
import json
import os
import re
import socket
import time

from processes import Processes, free_port

PATIENCE = 10.0
# Until the first answer, and until a request that was given up has arrived, too.
WARM, SETTLE = 60.0, 1.0


class Stand:
    """A server and the gateway in front of it."""

    def __init__(self, backend, program, folder):
        self.backend = backend
        self.folder = os.path.join(folder, re.sub("[^a-z]", "", backend.name.lower()))
        os.mkdir(self.folder)
        self.log = os.path.join(self.folder, "log")
        open(self.log, "w").close()
        self.position = 0
        self.processes = Processes(os.path.join(self.folder, "output"))
        try:
            self.begin(program)
        except Exception:
            self.stop()
            raise

    def begin(self, program):
        port = free_port()
        for command in self.backend.commands(port, self.log, self.folder):
            self.processes.start(command)
        self.processes.wait_port(port, self.backend.name)
        self.socket = os.path.join(self.folder, "socket")
        self.processes.start([program, "serve", self.configuration(port)])
        self.processes.wait(self.connect, "portcullis for " + self.backend.name)
        self.warm()

    def warm(self):
        """Asks until the server has answered once: it may take a Java program seconds."""
        deadline = time.monotonic() + WARM
        tries = 0
        while not self.news() and time.monotonic() < deadline:
            self.play(b"GET / HTTP/1.1\r\nHost: interop.test\r\nConnection: close\r\n\r\n")
            tries += 1
        if tries > 1:
            # One that was given up may still arrive.
            time.sleep(SETTLE)
            self.news()

    def configuration(self, port):
        path = os.path.join(self.folder, "portcullis.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                f"listen: [{{ address: \"unix:{self.socket}\" }}]\n"
                f"origins: {{ interop: {{ servers: [\"127.0.0.1:{port}\"], host: client,"
                " first_byte_timeout: 3s } }\n"
                "apps: [{ id: ABCDE12345.com.example.interop, environments: [production] }]\n"
                f"store: {{ sqlite: {self.folder}/portcullis.db }}\n"
                "log: { access: off, level: error }\nevent_loops: 1\n"
                "default: { origin: interop, mode: observe }\n"
            )
        return path

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        connection.connect(self.socket)
        return connection

    def play(self, whole):
        """Sends the bytes of a case and waits for the gateway to end the connection."""
        with self.connect() as client:
            try:
                client.sendall(whole)
                client.shutdown(socket.SHUT_WR)
                while client.recv(1 << 16):
                    pass
            except (ConnectionResetError, BrokenPipeError):
                pass

    def news(self):
        """What the server has logged since the last call."""
        with open(self.log, "rb") as log:
            log.seek(self.position)
            lines = log.read()
            self.position = log.tell()
        return [json.loads(line) for line in lines.splitlines()]

    def stop(self):
        self.processes.stop()
