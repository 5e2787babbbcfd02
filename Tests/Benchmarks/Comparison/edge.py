"""What the edge costs beside nginx: TLS, HTTP/2, connections for one request, downloads.

Each load gives how much was done; the gateway's processor time is divided by that.
"""
import os
import re
import subprocess

from failure import Failure
from gauges import cpu_seconds

STREAMS = 16
DOWNLOAD = 1 << 30

# Name, what is measured, and how it is shown.
ROWS = [
    ("tls", "kept alive under TLS, CPU per request", "{:.1f} µs"),
    ("h2", f"HTTP/2 under TLS, {STREAMS} streams at a time, CPU per request", "{:.1f} µs"),
    ("close", "a connection for each request, CPU per request", "{:.1f} µs"),
    ("handshake", "full TLS handshake, CPU", "{:.0f} µs"),
    ("download", "1 GiB download, CPU", "{:.2f} s"),
    ("download_tls", "1 GiB download under TLS, CPU", "{:.2f} s"),
]


class Edge:
    """The loads for one gateway."""

    def __init__(self, pid, ports, seconds, connections):
        self.pid, self.seconds, self.connections = pid, seconds, connections
        self.plain, self.secure = ports

    def sample(self):
        """CPU of the gateway for one of each: microseconds, and seconds for a download."""
        rate = ["-t1", f"-c{self.connections}", f"-d{self.seconds}s"]
        small, secure = f"http://127.0.0.1:{self.plain}/", f"https://127.0.0.1:{self.secure}/"
        h2load = ["h2load", "-t1", f"-c{self.connections}", f"-m{STREAMS}", "-D", str(self.seconds)]
        handshakes = ["openssl", "s_time", "-connect", f"127.0.0.1:{self.secure}", "-new"]
        curl = ["curl", "--silent", "--show-error", "--fail", "--insecure", "--output", os.devnull]
        return {
            "tls": self._cost(["wrk", *rate, secure], r"(\d+) requests in"),
            "h2": self._cost([*h2load, secure], r"(\d+) succeeded, 0 failed"),
            "close": self._cost(
                ["wrk", *rate, "-H", "Connection: close", small], r"(\d+) requests in"
            ),
            "handshake": self._cost(
                [*handshakes, "-time", str(self.seconds)], r"(\d+) connections in \d+ real"
            ),
            "download": self._cost([*curl, small + "large"], None) / 1e6,
            "download_tls": self._cost([*curl, "--http1.1", secure + "large"], None) / 1e6,
        }

    def _cost(self, command, pattern):
        before = cpu_seconds(self.pid)
        done = subprocess.run(command, capture_output=True, text=True)
        used = cpu_seconds(self.pid) - before
        bad = re.search(r"Non-2xx.*|Socket errors: .*", done.stdout)
        if pattern:
            # s_time ends with 1 when the time is over in the middle of a handshake.
            found = re.search(pattern, done.stdout)
            count = int(found.group(1)) if found else 0
        else:
            count = 1 if done.returncode == 0 else 0
        if bad or count == 0:
            said = bad.group(0) if bad else done.stdout[-500:] + done.stderr[-500:]
            raise Failure(f"{command[0]}: {said}", "run it: " + " ".join(command))
        return used * 1e6 / count


def certificate(folder):
    """A self-signed certificate and its key, for 127.0.0.1."""
    names = [os.path.join(folder, name) for name in ("edge.pem", "edge.key")]
    if not os.path.exists(names[0]):
        command = [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-days", "2", "-subj", "/CN=edge", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", names[1], "-out", names[0],
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"openssl: {done.stderr}", " ".join(command))
        os.chmod(names[1], 0o600)
    return names
