"""The processes of a server, started and ended as one."""
import os
import signal
import socket
import subprocess
import time

PATIENCE = 40.0


class Processes:
    def __init__(self, output):
        self.output = output
        self.processes = []

    def start(self, command, environment):
        with open(self.output, "ab") as output:
            self.processes.append(subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
                env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | environment,
            ))

    def wait(self, port, name):
        """Waits until the last one takes connections."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.processes[-1].poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except OSError:
                time.sleep(0.05)
        with open(self.output, encoding="utf-8", errors="replace") as output:
            said = output.read()[-2000:]
        raise RuntimeError(f"{name} takes no connections: {said}")

    def stop(self):
        for process in reversed(self.processes):
            self.signal(process, signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                pass
            # What is left of its session: workers whose master is gone.
            self.signal(process, signal.SIGKILL)
            process.wait()

    def signal(self, process, number):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
