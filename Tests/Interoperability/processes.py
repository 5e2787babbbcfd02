"""The processes of a server, started and ended as one."""
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from keep import PR_SET_PDEATHSIG, prctl

PATIENCE = 120.0
KEEP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keep.py")


# Each port is named once: who has got it may not listen yet.
named_ports = set()
naming = threading.Lock()


def first_given_port():
    """The first of the ports that the system gives to connections and to who asks for any."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as ports:
        return int(ports.read().split()[0])


def free_port():
    """A port below those that the system gives: a connection or a test of another run beside this
    one would have such a port before the server has it."""
    end = max(first_given_port(), 12_000)
    while True:
        port = random.randrange(10_000, end)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        with naming:
            if port not in named_ports:
                named_ports.add(port)
                return port


def end_when_told(folder=None):
    """From now on a signal to end ends every server first, and removes this folder. The end of the
    process that has started this one is such a signal.

    Without it the servers end too, see keep.py, and the folder stays.
    """
    def end(*_):
        processes = list(Processes.everyone)
        for process in processes:
            process.kill()
        for process in processes:
            process.wait_gone()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(128 + signal.SIGTERM)

    starter = os.getppid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != starter:
        end()


class Kept:
    """One process, with all that it has started. It ends with this one, see keep.py."""

    def __init__(self, command, environment, output):
        reading, self.pipe = os.pipe()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", KEEP, *command], stdin=reading, stdout=output,
                stderr=output, start_new_session=True, env=os.environ | environment,
            )
        except OSError:
            os.close(self.pipe)
            raise
        finally:
            os.close(reading)

    def is_running(self):
        return self.process.poll() is None

    def terminate(self):
        self.process.terminate()

    def wait(self):
        self.process.wait()
        self.kill()

    def kill(self):
        """Ends it and all that it has started at once."""
        pipe, self.pipe = self.pipe, None
        if pipe is not None:
            os.close(pipe)

    def wait_gone(self):
        """Waits without the lock of `Popen`, which a thread may hold that a signal has stopped."""
        try:
            os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            pass


class Processes:
    # All that were started and not stopped, of every stand.
    everyone = []

    def __init__(self, output):
        self.output = output
        self.processes = []

    def start(self, command, environment=None):
        with open(self.output, "ab") as output:
            process = Kept(command, environment or {}, output)
        self.processes.append(process)
        Processes.everyone.append(process)

    def wait(self, connect, name):
        """Waits until the last one takes connections."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.processes[-1].is_running():
            try:
                connect().close()
                return
            except OSError:
                time.sleep(0.02)
        with open(self.output, encoding="utf-8", errors="replace") as output:
            said = output.read()[-2000:]
        raise RuntimeError(f"{name} takes no connections: {said}")

    def wait_port(self, port, name):
        self.wait(lambda: socket.create_connection(("127.0.0.1", port)), name)

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait()
            Processes.everyone.remove(process)
        self.processes = []
