"""A server, and the gateway in front of it, as processes."""
import json
import os
import re
import signal
import socket
import subprocess
import time

PATIENCE = 10.0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(connect, process, name):
    """Waits until a server takes connections."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            connect().close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError(f"{name} does not take connections")


class Stand:
    """A server and the gateway in front of it."""

    def __init__(self, backend, program, folder):
        self.backend = backend
        self.folder = os.path.join(folder, re.sub("[^a-z]", "", backend.name.lower()))
        os.mkdir(self.folder)
        self.log = os.path.join(self.folder, "log")
        open(self.log, "w").close()
        self.position = 0
        self.processes = []
        try:
            self.begin(program)
        except Exception:
            self.stop()
            raise

    def begin(self, program):
        port = free_port()
        for command in self.backend.commands(port, self.log, self.folder):
            self.start(command)
        wait_for(
            lambda: socket.create_connection(("127.0.0.1", port)),
            self.processes[-1],
            self.backend.name,
        )
        self.socket = os.path.join(self.folder, "socket")
        self.start([program, "serve", self.configuration(port)])
        wait_for(self.connect, self.processes[-1], "portcullis for " + self.backend.name)

    def start(self, command):
        with open(os.path.join(self.folder, "output"), "ab") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
                env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
            )
        self.processes.append(process)

    def configuration(self, port):
        path = os.path.join(self.folder, "portcullis.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                f"listen: [{{ address: \"unix:{self.socket}\" }}]\n"
                f"origins: {{ garden: {{ servers: [\"127.0.0.1:{port}\"], host: client,"
                " first_byte_timeout: 3s } }\n"
                "apps: [{ id: ABCDE12345.com.example.garden, environments: [production] }]\n"
                f"store: {{ sqlite: {self.folder}/portcullis.db }}\n"
                "log: { access: off, level: error }\nlanes: 1\n"
                "default: { origin: garden, mode: observe }\n"
            )
        return path

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        connection.connect(self.socket)
        return connection

    def play(self, whole):
        """Sends the octets of a case and waits for the gateway to end the connection."""
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
        for process in reversed(self.processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
