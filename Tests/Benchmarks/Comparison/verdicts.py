"""Verified requests with a signed verdict beside those without, in turns at three gateways."""
import os
import secrets
import subprocess

import loads
from gauges import in_turns

# What signs the verdict: nothing, a secret that the origin has too (HS256), or a key (ES256).
SIGNERS = ("none", "secret", "key")


class Verdicts:
    """Gateways that differ in what signs their verdicts. Each has a store of its own, so that all
    of them take the same requests."""

    def __init__(self, stand, seconds, slice_size):
        self.stand, self.seconds, self.slice_size = stand, seconds, slice_size
        self.script = stand.write("signed.lua", loads.SIGNED)
        keys = stand.path("keys.jsonl")
        self.running = {
            signer: stand.start_with(
                signer, {"sqlite": stand.path(f"{signer}.db")}, keys, self._settings(signer)
            )
            for signer in SIGNERS
        }

    def measure(self, rounds, connections):
        def sample(signer, number):
            pid, port = self.running[signer]
            env = loads.signed_part(self.stand.path("requests.tsv"), number, self.slice_size)
            return loads.requests(pid, port, self.seconds, connections, self.script, env)

        return in_turns(rounds, SIGNERS, sample)

    def _settings(self, signer):
        """The section `verdict` of the configuration."""
        if signer == "none":
            return {}
        file = self.stand.path(f"verdict.{signer}")
        if signer == "key":
            command = ["openssl", "genpkey", "-algorithm", "EC", "-out", file,
                       "-pkeyopt", "ec_paramgen_curve:P-256"]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        else:
            self.stand.write(f"verdict.{signer}", secrets.token_hex(32))
        os.chmod(file, 0o600)
        return {"verdict": {"jwt": {signer: file, "audience": "orders"}}}


def table(results):
    plain, secret, key = (results[signer] for signer in SIGNERS)
    rows = [["verified request", "no signed verdict", "`secret`", "`key`", "`secret` to none",
             "`key` to none"]]
    for name, what, form in (("cpu_us", "CPU", "{:.1f} µs"), ("p99_ms", "p99", "{:.1f} ms"),
                             ("rate", "requests a second", "{:,.0f}")):
        figures = [form.format(each[name]) for each in (plain, secret, key)]
        ratios = [f"{each[name] / plain[name]:.2f}" for each in (secret, key)]
        rows.append([what, *figures, *ratios])
    return rows
