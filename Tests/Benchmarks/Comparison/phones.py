"""Verified requests of Android phones beside those of Apple's devices, in turns at one gateway."""
import json
import os
import subprocess
import time

import loads
from gateways import APP, free_port
from gauges import in_turns

PACKAGE = "com.example.bench"
PLATFORMS = ("apple", "android")

# A copy of Google's list that is so young that the gateway asks for no other one.
STATUS_LIST = """portcullis-status-list 1
url https://android.googleapis.com/attestation/status
date {now}

{{"entries": {{}}}}
"""


class Phones:
    """A gateway that knows keys of both platforms, and requests that each of them has signed."""

    def __init__(self, stand, signer, keys, seconds, slice_size):
        """signer: the program that makes keys and signs with them."""
        self.stand, self.signer, self.keys = stand, signer, keys
        self.seconds, self.slice_size = seconds, slice_size

    def measure(self, rounds, connections):
        self._sign(rounds + 1)
        pid, port = self._start()
        script = self.stand.write("signed.lua", loads.SIGNED)

        def sample(platform, number):
            file = self._file(platform, "requests.tsv")
            env = loads.signed_part(file, number, self.slice_size)
            return loads.requests(pid, port, self.seconds, connections, script, env)

        return in_turns(rounds, PLATFORMS, sample)

    def _file(self, platform, name):
        return os.path.join(self.stand.path(platform), name)

    def _sign(self, slices):
        each = str(-(-self.slice_size * slices // self.keys))
        for platform in PLATFORMS:
            os.mkdir(self.stand.path(platform))
            options = ["--android"] if platform == "android" else []
            subprocess.run(
                [self.signer, *options, self.stand.path(platform), str(self.keys), each, "GET",
                 "/verified", "0", "1", "/upload"],
                check=True,
            )

    def _start(self):
        port = free_port()
        store = self.stand.path("phones.db")
        self.stand.write("phones.db.google-status", STATUS_LIST.format(now=int(time.time())))
        file = self.stand.write("phones.yaml", json.dumps({
            "listen": [{"address": f"127.0.0.1:{port}"}],
            "event_loops": 1,
            "origins": {"small": {"servers": [f"127.0.0.1:{self.stand.origin_port}"]}},
            "apps": [
                {"id": APP, "environments": ["production"]},
                {"android": PACKAGE, "signers": ["07" * 32]},
            ],
            "store": {"sqlite": store},
            "log": {"access": "off"},
            "default": {"origin": "small", "mode": "off"},
            "rules": [{
                "id": "verified", "match": {"path": "/verified"}, "origin": "small",
                "apps": [APP, PACKAGE], "mode": "enforce", "sign": ["method", "target"],
                "challenge": "none", "counter": "strict",
            }],
        }))
        for platform in PLATFORMS:
            self.stand.run("keys", "import", "--config", file, self._file(platform, "keys.jsonl"))
        command = [self.stand.program, "serve", file]
        return self.stand.launch("phones", command, port).pid, port


def table(results):
    apple, android = (results[platform] for platform in PLATFORMS)
    rows = [["verified request", "App Attest", "Android", "Android to App Attest"]]
    for name, what, form in (("cpu_us", "CPU", "{:.1f} µs"), ("p99_ms", "p99", "{:.1f} ms"),
                             ("rate", "requests a second", "{:,.0f}")):
        ratio = android[name] / apple[name]
        rows.append([what, form.format(apple[name]), form.format(android[name]), f"{ratio:.2f}"])
    return rows
