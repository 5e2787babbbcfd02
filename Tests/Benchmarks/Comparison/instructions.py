"""Counts the instructions that a request costs the gateway, and compares them with a file.

Called by deploy/benchmark --instructions. callgrind runs the gateway and counts what an event loop
does for connections that are ready. A client and an origin take turns with it, so that no time
enters: neither the load of the machine nor the speed of its processor changes a count.

The file has a line for each load. What a count depends on besides the gateway stands above them:
processor family, compiler, libraries, callgrind. With others there is nothing to compare.
"""
import argparse
import json
import os
import platform
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

import edge
from device import APP, Device
from failure import Failure
from gateways import Stand, free_port
from lockstep import ENDPOINTS, CallOrigin, Client, Client2, Origin

# Counted is what runs between entering and leaving this function, by which an event loop serves the
# connections that are ready. Its wait for them, Dispatch, timers and other threads depend on time.
SERVING = "*LoopC10serveRound*"
HERE = os.path.dirname(os.path.abspath(__file__))
TOLERANCE = 0.01
# The least of the windows counts: whatever disturbs one adds to it.
WINDOWS = 5
UPLOAD = 1 << 20
CALL = "/pkg.Service/Call"
NEXT_STEP = """a count changes on purpose only. Find the change: deploy/benchmark --instructions
  --profiles FOLDER here and at the commit before, then callgrind_annotate --threshold=100 on both;
  mend it. Or, with the reason in the commit: deploy/benchmark --instructions --record"""

RECORD_AGAIN = """with the tools of here, count the commit that recorded the file, and see that it differs
  little: deploy/benchmark --instructions; then record: deploy/benchmark --instructions --record"""


class Gateway:
    """The gateway under callgrind, one event loop, with what its loads need."""

    def __init__(self, program, folder, origin, calls, device):
        self.folder, self.process, self.dumps = folder, None, 0
        self.port, self.secure_port = free_port(), free_port()
        self.certificate, key = edge.certificate(folder)
        stand = Stand(folder, program, None)
        enforced = {"origin": "small", "mode": "enforce"}
        self.file = stand.write("portcullis.yaml", json.dumps({
            "listen": [
                {"address": f"127.0.0.1:{self.port}", "http2": "on"},
                {"address": f"127.0.0.1:{self.secure_port}",
                 "tls": {"certificate": self.certificate, "key": key}},
            ],
            "event_loops": 1,
            "origins": {
                "small": {"servers": [f"127.0.0.1:{origin.port}"]},
                "calls": {"servers": [f"127.0.0.1:{calls.port}"], "http2": "on"},
            },
            "apps": [{"id": APP, "environments": ["production"]}],
            "store": {"sqlite": stand.path("portcullis.db")},
            "log": {"access": "off"},
            "default": {"origin": "small", "mode": "off"},
            "rules": [
                {"id": "verified", "match": {"path": "/verified"}, **enforced},
                {"id": "session", "match": {"path": "/session"}, **enforced,
                 "accept": ["assertion", "session"]},
                {"id": "calls", "match": {"path": CALL}, "origin": "calls", "mode": "off"},
            ],
        }))
        keys = stand.write("keys.jsonl", device.import_line() + "\n")
        stand.run("keys", "import", "--config", self.file, keys)
        self._start(program)

    def _start(self, program):
        command = [
            "valgrind", "--tool=callgrind", "--collect-atstart=no", "--dump-line=no",
            "--compress-strings=no",  # Each file has its own names.
            f"--toggle-collect={SERVING}", f"--callgrind-out-file={self.folder}/profile",
            program, "serve", self.file,
        ]
        # Hashed collections would have another order in each run.
        seeded = {**os.environ, "SWIFT_DETERMINISTIC_HASHING": "1", "LD_PRELOAD": self._shim()}
        with open(os.path.join(self.folder, "gateway.out"), "w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=seeded)
        deadline = time.monotonic() + 120
        while self.process.poll() is None and time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.secure_port)) == 0:
                    return
            time.sleep(0.1)
        self.end()
        with open(os.path.join(self.folder, "gateway.out")) as log:
            raise Failure(f"the gateway does not listen: {log.read()[-500:]}", "see above")

    def _shim(self):
        """The library of sigsuspend.c."""
        library = os.path.join(self.folder, "sigsuspend.so")
        command = ["clang", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o", library]
        command.append(os.path.join(HERE, "sigsuspend.c"))
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"clang: {done.stderr}", "use the clang of the Swift toolchain")
        return library

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def take_count(self):
        """The instructions since the last call."""
        command = ["vgdb", f"--pid={self.process.pid}", "dump"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.dumps += 1
        dump = os.path.join(self.folder, f"profile.{self.dumps}")
        if done.returncode or not os.path.exists(dump):
            raise Failure(f"vgdb: {done.stderr.strip()}", "see what valgrind says in gateway.out")
        with open(dump) as file:
            count = int(re.search(r"^(?:totals|summary): (\d+)", file.read(), re.M).group(1))
        if count == 0:
            raise Failure(f"no function is named {SERVING}", "correct SERVING in instructions.py")
        return count


class Loads:
    """What is counted. Each load has a connection of its own, which no other one lets idle."""

    def __init__(self, gateway, origin, calls, device):
        self.gateway, self.origin, self.calls, self.device = gateway, origin, calls, device
        self.challenge = None
        # A name, the requests of a window, and what makes the function that sends one.
        self.all = [
            ("pass-through", 200, self._plain),
            ("pass-through under TLS", 200, self._secure),
            ("pass-through over HTTP/2", 200, self._second),
            ("unary gRPC call", 200, self._call),
            ("verified", 40, self._verified),
            ("verified by session", 200, self._by_session),
            ("1 MiB upload", 2, self._upload),
        ]

    def _client(self):
        return Client(self.gateway.port, self.origin)

    def _plain(self):
        client = self._client()
        return lambda: client.get("/", {})

    def _secure(self):
        client = Client(self.gateway.secure_port, self.origin, self.gateway.certificate)
        return lambda: client.get("/", {})

    def _second(self):
        client = Client2(self.gateway.port, self.origin)
        return lambda: client.get("/")

    def _call(self):
        client = Client2(self.gateway.port, self.calls)
        return lambda: client.call(CALL)

    def _upload(self):
        client = self._client()
        return lambda: client.put("/", UPLOAD)

    def _verified(self):
        client = self._client()
        self.challenge = client.call("/challenges", {})["challenges"][0]

        def once():
            fields = self.device.assertion_fields("GET", "/verified", self.challenge)
            # Each response brings the challenge for the next request.
            self.challenge = client.get("/verified", fields)["app-attest-challenge"]

        return once

    def _by_session(self):
        client = self._client()
        challenge = client.call("/challenges", {})["challenges"][0]
        fields = self.device.assertion_fields("POST", ENDPOINTS + "/sessions", challenge)
        opened = client.call("/sessions", fields)
        self.device.opens(opened["session"], opened["secret"])
        return lambda: client.get("/session", self.device.session_fields("GET", "/session"))


def count(program, folder):
    """The counts of each load's windows: instructions for one request."""
    origin, calls, device = Origin(), CallOrigin(), Device()
    gateway = Gateway(program, folder, origin, calls, device)
    found = {}
    try:
        for name, number, prepare in Loads(gateway, origin, calls, device).all:
            once = prepare()
            # The first requests also fill caches and grow buffers.
            for _ in range(max(number // 2, 1)):
                once()
            gateway.take_count()
            found[name] = []
            for _ in range(WINDOWS):
                for _ in range(number):
                    once()
                found[name].append(gateway.take_count() / number)
    finally:
        gateway.end()
        origin.close()
        calls.close()
    return found


def basis():
    """What a count depends on besides the gateway."""
    swift = subprocess.run(["swift", "--version"], capture_output=True, text=True).stdout
    valgrind = subprocess.run(["valgrind", "--version"], capture_output=True, text=True).stdout
    return ", ".join([
        platform.machine(), "Swift " + re.search(r"Swift version (\S+)", swift).group(1),
        "glibc " + platform.libc_ver()[1], " ".join(ssl.OPENSSL_VERSION.split()[:2]),
        valgrind.strip(),
    ])


def recorded(file):
    """What the counts of the file depend on, and the counts."""
    if not os.path.exists(file):
        raise Failure(f"{file} is not there", "deploy/benchmark --instructions --record")
    with open(file) as lines:
        first, *rest = lines.read().splitlines()
    return first.removeprefix("# "), {
        name: int(number) for name, number in (line.split("\t") for line in rest)
    }


def record(file, found):
    with open(file, "w") as out:
        out.write(f"# {basis()}\n")
        for name, counts in found.items():
            out.write(f"{name}\t{round(min(counts))}\n")


def compare(found, expected):
    """Prints the table; whether all counts are as expected."""
    agree = True
    print(f"{'instructions for one':26} {'recorded':>12} {'now':>12} {'change':>8} {'scatter':>8}")
    for name, counts in found.items():
        now, then = min(counts), expected.get(name)
        scatter = max(counts) / now - 1
        line = f"{name:26} {then or '-':>12} {now:12.0f}"
        change = now / then - 1 if then else None
        line += f" {change:+8.1%}" if then else f" {'new':>8}"
        is_good = then is not None and abs(change) <= TOLERANCE
        agree = agree and is_good
        print(f"{line} {scatter:8.1%}{'' if is_good else '  DIFFERS'}")
    for name in expected.keys() - found.keys():
        print(f"{name:26} is in the file and not counted")
        agree = False
    return agree


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="the gateway to count")
    parser.add_argument("--counts", required=True, help="the file to compare with")
    parser.add_argument("--record", action="store_true", help="writes the file")
    parser.add_argument("--must-compare", action="store_true", help="fails on another basis")
    parser.add_argument("--profiles", help="folder that keeps callgrind's files")
    return parser.parse_args()


def main():
    chosen = options()
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.profiles or scratch
        os.makedirs(folder, exist_ok=True)
        # Debug information makes callgrind read for minutes, and adds nothing to a count.
        program = os.path.join(scratch, "portcullis")
        subprocess.run(["strip", "-g", "-o", program, chosen.program], check=True)
        found = count(program, folder)
    if chosen.record:
        record(chosen.counts, found)
    there, expected = recorded(chosen.counts)
    agree = compare(found, expected)
    if there != basis():
        found = f"recorded with {there}; here is {basis()}"
        if chosen.must_compare:
            raise Failure(f"{found}: not compared", RECORD_AGAIN)
        print(f"benchmark: !!! {found}: NOT COMPARED")
        return 0
    if not agree:
        raise Failure(f"a count differs from {chosen.counts} by more than 1 %", NEXT_STEP)
    print("benchmark: all counts are as recorded")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print(f"benchmark: {failure}", file=sys.stderr)
        print(f"benchmark: next: {failure.next_step}", file=sys.stderr)
        sys.exit(1)
