"""Measures the steps of a request, then the gateway beside nginx and HAProxy, and prints a table.

Called by deploy/benchmark, which builds and installs what is needed. Every figure is the median of
rounds in which the gateways take turns; what is compared are figures of one run.
"""
import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile

import calls
import fleet
import loads
import phones
import signed
import sizing
import verdicts
from database import Database
from edge import DOWNLOAD, Edge
from failure import Failure
from gauges import bare_verification_us, cpu_seconds, machine, medians
from gateways import Stand, find
from sessions import SCRIPT, Sessions
from table import Table

CONNECTIONS = 64
KEYS = 2_000


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", required=True, help="folder of portcullis")
    parser.add_argument("--benchmarks", required=True, help="folder of the benchmarks' programs")
    parser.add_argument("--root", required=True, help="folder of the project")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sessions", action="store_true", help="compares sessions, nothing else")
    parser.add_argument("--edge", action="store_true", help="compares the edge, nothing else")
    parser.add_argument("--calls", action="store_true", help="compares gRPC calls, nothing else")
    parser.add_argument("--phones", action="store_true", help="compares Android with App Attest")
    parser.add_argument("--verdicts", action="store_true", help="compares signed verdicts")
    parser.add_argument("--fleet", action="store_true", help="compares PostgreSQL with SQLite")
    parser.add_argument("--keys", type=int, help="with --fleet: keys in the database")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--json")
    parser.add_argument("--markdown", action="store_true")
    chosen = parser.parse_args()
    chosen.rounds = chosen.rounds or (1 if chosen.quick else 5)
    chosen.seconds = chosen.seconds or (2 if chosen.quick else 6)
    chosen.idle = 2_000 if chosen.quick else 8_000
    chosen.verified = 2_000 if chosen.quick else 20_000
    chosen.upload = (1 << 28) if chosen.quick else (1 << 30)
    return chosen


def say(text):
    print(f"benchmark: {text}", file=sys.stderr, flush=True)


def micro(chosen):
    """The steps of a request; a list of group, name, nanoseconds, allocations."""
    say("the steps of a request, one by one")
    command = [os.path.join(chosen.benchmarks, "micro-benchmarks")]
    done = subprocess.run(
        command + (["--quick"] if chosen.quick else []), capture_output=True, text=True
    )
    if done.returncode:
        raise Failure(done.stderr.strip(), " ".join(command))
    rows = [line.split("\t") for line in done.stdout.splitlines()[1:]]
    return [
        {"group": row[0], "name": row[1], "ns": float(row[2]), "allocations": float(row[3])}
        for row in rows
    ]


def requests_a_slice(chosen):
    """The most that a gateway verifies in a round of one load.

    One event loop verifies on one thread: it is never faster than the bare verification.
    """
    return int(chosen.seconds * 1.2e6 / bare_verification_us(1))


def signer(chosen):
    return os.path.join(chosen.benchmarks, "signed-requests")


def sign(chosen, folder):
    """The requests and uploads that are sent later, signed."""
    say("signing requests")
    slice_size = requests_a_slice(chosen)
    loads_a_round = 1
    if chosen.fleet:
        loads_a_round = 3 if chosen.keys else len(fleet.WIDTHS) + 2
    slices = (chosen.rounds + 1) * loads_a_round
    rounds = -(-slice_size * slices // KEYS)
    command = [signer(chosen), folder, str(KEYS), str(rounds), "GET", "/verified"]
    command += [str(chosen.rounds + 1), str(chosen.upload), "/upload"]
    subprocess.run(command, check=True)
    return slice_size


def passing(chosen, stand, systems):
    say(f"pass-through: {chosen.rounds} rounds of {chosen.seconds} s each")
    running = {system: stand.start(system) for system in systems}
    for pid, port in running.values():
        loads.requests(pid, port, 1, CONNECTIONS)
    samples = {system: [] for system in systems}
    for _ in range(chosen.rounds):
        for system, (pid, port) in running.items():
            sample = loads.requests(pid, port, chosen.seconds, CONNECTIONS)
            samples[system].append(sample)
    return {system: medians(rows) for system, rows in samples.items()}


def idling(chosen, stand, systems):
    say(f"{chosen.idle} idle connections each")
    results = {}
    for system in systems:
        pid, port = stand.start(system)
        loads.requests(pid, port, 1, CONNECTIONS)
        results[system] = loads.idle(pid, port, chosen.idle)
    return results


def uploading(chosen, stand):
    say(f"uploads of {chosen.upload >> 20} MiB, streamed")
    with open(stand.path("uploads.tsv")) as file:
        proofs = [line.split() for line in file]
    zeros = stand.path("zeros")
    with open(zeros, "wb") as file:
        file.truncate(chosen.upload)
    keys = stand.path("keys.jsonl")
    running = {system: stand.start(system, keys) for system in ("portcullis", "nginx")}
    samples = {system: [] for system in running}
    for number, proof in enumerate(proofs):
        for system, (pid, port) in running.items():
            sample = loads.upload(pid, port, zeros, chosen.upload, proof)
            # The first finds cold buffers.
            if number > 0:
                samples[system].append(sample)
    return {system: medians(rows) for system, rows in samples.items()}


def verifying(chosen, stand, slice_size):
    say(f"verified requests: {chosen.rounds} rounds of {chosen.seconds} s")
    script = stand.path("signed.lua")
    with open(script, "w") as file:
        file.write(loads.SIGNED)
    pid, port = stand.start("portcullis", stand.path("keys.jsonl"))
    samples = []
    for number in range(chosen.rounds + 1):
        bare = bare_verification_us(1 if chosen.quick else 2)
        env = loads.signed_part(stand.path("requests.tsv"), number, slice_size)
        # The first round warms up.
        sample = loads.requests(pid, port, chosen.seconds, CONNECTIONS, script, env)
        if number > 0:
            samples.append({**sample, "bare_us": bare})
    return medians(samples)


def at_the_edge(chosen, stand):
    """TLS, HTTP/2, connections for one request and downloads, beside nginx."""
    say(f"the edge: {chosen.rounds} rounds of 2 × 4 × {chosen.seconds} s and 4 downloads")
    stand.add_large_file(DOWNLOAD)
    running = {system: stand.start_secure(system) for system in ("portcullis", "nginx")}
    edges = {
        system: Edge(pid, ports, chosen.seconds, CONNECTIONS)
        for system, (pid, ports) in running.items()
    }
    samples = {system: [] for system in edges}
    for _ in range(chosen.rounds):
        for system, edge in edges.items():
            samples[system].append(edge.sample())
    return {system: medians(rows) for system, rows in samples.items()}


def by_protocol(chosen, folder, program, nginx):
    """CPU of verified requests over HTTP/1.1 and HTTP/2, with the same requests and client."""
    say(f"verified over HTTP/1.1 and HTTP/2: {chosen.rounds} rounds of 2 × {chosen.verified}")
    proofs = signed.proofs(os.path.join(folder, "requests.tsv"), chosen.verified * 2)
    warm, proofs = proofs[:chosen.verified], proofs[chosen.verified:]
    samples = []
    for _ in range(chosen.rounds):
        sample = {}
        for name, protocol in (("http1", signed.HTTP1), ("http2", signed.HTTP2)):
            # A fresh store takes the same requests again.
            with Stand(folder, program, nginx) as stand:
                pid, port = stand.start("portcullis", stand.path("keys.jsonl"))
                signed.send(protocol, port, CONNECTIONS, warm)
                before = cpu_seconds(pid)
                signed.send(protocol, port, CONNECTIONS, proofs)
                sample[name] = (cpu_seconds(pid) - before) * 1e6 / len(proofs)
        samples.append(sample)
    return medians(samples)


def by_session(chosen, stand):
    """Pass-through and requests by session, in turns at one gateway."""
    say(f"requests by session: {chosen.rounds} rounds of 2 × {chosen.seconds} s")
    pid, port = stand.start("portcullis", stand.path("keys.jsonl"))
    sessions = Sessions(port, [signer(chosen), "--sign"], CONNECTIONS)
    script, file = stand.path("sessions.lua"), stand.path("sessions.tsv")
    with open(script, "w") as out:
        out.write(SCRIPT)
    count = int(loads.requests(pid, port, 1, CONNECTIONS)["rate"] * 1.5 * chosen.seconds)
    samples = []
    for number in range(chosen.rounds + 1):
        passed = loads.requests(pid, port, chosen.seconds, CONNECTIONS)
        sessions.write(file, count)
        env = {"REQUESTS": file}
        sample = loads.requests(pid, port, chosen.seconds, CONNECTIONS, script, env)
        # The first round warms up.
        if number > 0:
            ratio = sample["cpu_us"] / passed["cpu_us"]
            samples.append({**sample, "pass_cpu_us": passed["cpu_us"], "ratio": ratio})
    return medians(samples)


def with_signed_verdicts(chosen, folder, program, nginx, slice_size):
    """Verified requests whose origin gets a signed verdict, beside others, in turns."""
    say(f"signed verdicts: {chosen.rounds} rounds of {len(verdicts.SIGNERS)} × {chosen.seconds} s")
    with Stand(folder, program, nginx) as stand:
        gateways_in_turns = verdicts.Verdicts(stand, chosen.seconds, slice_size)
        return gateways_in_turns.measure(chosen.rounds, CONNECTIONS)


def in_a_fleet(chosen, folder, stand, slice_size):
    """Verified requests on SQLite and PostgreSQL, in turns."""
    say(f"a fleet: {chosen.rounds} rounds of {2 * len(fleet.WIDTHS) + 2} × {chosen.seconds} s")
    with Database(folder) as database:
        slices = fleet.Slices(stand.path("requests.tsv"), slice_size)
        gateways = fleet.Fleet(stand, database, slices, chosen.seconds)
        # The first round warms up.
        rounds = [gateways.sample() for _ in range(chosen.rounds + 1)]
        return fleet.medians_by_row(rounds[1:])


def with_many_keys(chosen, folder, stand, slice_size):
    """What a database takes that holds so many keys."""
    say(f"a database of {chosen.keys:,} keys")
    with Database(folder) as database:
        slices = fleet.Slices(stand.path("requests.tsv"), slice_size)
        many = sizing.Sizing(stand, database, slices, chosen.seconds)
        return many.measure(chosen.keys, chosen.rounds)


def gateways(chosen, systems, nginx):
    program = os.path.join(os.path.abspath(chosen.programs), "portcullis")
    results = {}
    with tempfile.TemporaryDirectory(prefix="portcullis-benchmark-") as folder:
        if chosen.calls:
            say(f"gRPC calls: {chosen.rounds} rounds of {len(calls.LOADS)} × {calls.COUNT}")
            with Stand(folder, program, nginx) as stand:
                return {"calls": calls.Calls(stand).measure(chosen.rounds)}
        if chosen.phones:
            say(f"Android and App Attest: {chosen.rounds} rounds of 2 × {chosen.seconds} s")
            with Stand(folder, program, nginx) as stand:
                slice_size = requests_a_slice(chosen)
                both = phones.Phones(stand, signer(chosen), KEYS, chosen.seconds, slice_size)
                return {"phones": both.measure(chosen.rounds, CONNECTIONS)}
        slice_size = sign(chosen, folder)
        if chosen.sessions:
            with Stand(folder, program, nginx) as stand:
                return {"session": by_session(chosen, stand)}
        if chosen.verdicts:
            return {"verdicts": with_signed_verdicts(chosen, folder, program, nginx, slice_size)}
        if chosen.fleet:
            with Stand(folder, program, nginx) as stand:
                if chosen.keys:
                    return {"sizing": with_many_keys(chosen, folder, stand, slice_size)}
                return {"fleet": in_a_fleet(chosen, folder, stand, slice_size)}
        protocols = by_protocol(chosen, folder, program, nginx)
        if chosen.edge:
            with Stand(folder, program, nginx) as stand:
                return {"edge": at_the_edge(chosen, stand), "protocols": protocols}
        steps = {
            "pass": lambda stand: passing(chosen, stand, systems),
            "idle": lambda stand: idling(chosen, stand, systems),
            "upload": lambda stand: uploading(chosen, stand),
            "verified": lambda stand: verifying(chosen, stand, slice_size),
            "session": lambda stand: by_session(chosen, stand),
            "edge": lambda stand: at_the_edge(chosen, stand),
        }
        results["protocols"] = protocols
        for name, step in steps.items():
            # Fresh processes each time: what one leaves behind is no part of the next.
            with Stand(folder, program, nginx) as stand:
                results[name] = step(stand)
    return results


def main():
    chosen = options()
    # Ends what was started, as at every other end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # A gateway may count two descriptors for each connection, as HAProxy does.
    chosen.idle = min(chosen.idle, most // 2 - 1_500)
    nginx = find("nginx")
    systems = ["portcullis", "nginx"] + (["haproxy"] if find("haproxy") else [])
    facts = machine(chosen.root, nginx)
    facts.update(rounds=chosen.rounds, seconds=chosen.seconds, connections=CONNECTIONS)
    if facts["load"] > 0.5:
        say(f"the machine is busy (load {facts['load']}): trust the ratios, not the times")
    is_part = any(
        (chosen.sessions, chosen.edge, chosen.calls, chosen.phones, chosen.verdicts, chosen.fleet)
    )
    try:
        results = {"machine": facts, "steps": [] if is_part else micro(chosen)}
        results.update(gateways(chosen, systems, nginx))
    except Failure as failure:
        print(f"benchmark: {failure}\nbenchmark: next: {failure.next_step}", file=sys.stderr)
        sys.exit(1)
    print(Table(results, systems, chosen.markdown).text)
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump(results, file, indent=2)


if __name__ == "__main__":
    main()
