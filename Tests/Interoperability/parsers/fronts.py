#!/usr/bin/env python3
"""Proxies in front of the gateway, and what becomes of each request case on that way.

usage: fronts.py PORTCULLIS [PROXY...]

Every request case of Tests/HTTPScenarios/Cases, the malformed ones included, is sent to each proxy,
which forwards to the gateway, which forwards to a strict recorder. Whatever the proxy makes of it, the
recorder has to see what the gateway says in its log that it judged: as many requests, and of each the
method, the path, the host and the length of the content. After each case a request on another
connection must get its own answer, and no other.

A case of which that is not so is UNSAFE, and is nowhere listed. Exit status: 0 when there is none,
1 when there is, 2 when no proxy is there.
"""
import concurrent.futures
import json
import os
import re
import shutil
import socket
import sys
import tempfile
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from cases import load_requests
from more_servers import PROXIES, wait_for
from processes import Processes, end_when_told, free_port
from servers import HERE

# Seconds until the first byte of an answer, and between two of them.
FIRST, NEXT = 0.5, 0.06
# Until a program in Java has answered its first request.
WARM = 120.0
PATIENCE = 6.0


class Line:
    """Recorder, gateway and proxy, one behind the other."""

    def __init__(self, proxy, program, folder):
        self.proxy = proxy
        self.folder = os.path.join(folder, re.sub("[^a-z0-9]", "", proxy.name.lower()))
        os.mkdir(self.folder)
        os.chmod(self.folder, 0o777)
        self.records = os.path.join(self.folder, "records")
        self.log = os.path.join(self.folder, "access.log")
        self.processes = Processes(os.path.join(self.folder, "output"))
        self.front = None
        try:
            recorder, gateway = free_port(), free_port()
            self.processes.start([sys.executable, os.path.join(HERE, "recorder.py"), str(recorder), self.records])
            wait_for(recorder)
            self.processes.start([program, "serve", self.configuration(gateway, recorder)])
            self.processes.wait_port(gateway, "portcullis for " + proxy.name)
            self.gateway = gateway
            self.begin_proxy(0)
        except Exception:
            self.stop()
            raise

    def begin_proxy(self, number):
        """Starts the proxy: once more where a case has ended it, or has made it answer no one."""
        if self.front:
            self.front.stop()
        self.port = free_port()
        place = os.path.join(self.folder, f"proxy-{number}")
        os.mkdir(place)
        os.chmod(place, 0o777)
        self.front = Processes(os.path.join(place, "output"))
        self.front.start(self.proxy.command(self.port, self.gateway, place))
        self.front.wait_port(self.port, self.proxy.name)
        self.warm()

    def stop(self):
        if self.front:
            self.front.stop()
        self.processes.stop()

    def configuration(self, port, origin):
        path = os.path.join(self.folder, "portcullis.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                f"listen: [{{ address: 127.0.0.1:{port} }}]\n"
                f"origins: {{ interop: {{ servers: [\"127.0.0.1:{origin}\"], first_byte_timeout: 3s }} }}\n"
                "apps: [{ id: ABCDE12345.com.example.interop, environments: [production] }]\n"
                f"store: {{ sqlite: {self.folder}/portcullis.db }}\n"
                f"log: {{ access: {self.log}, address_refusals: off, level: error }}\nevent_loops: 1\n"
                "default: { origin: interop, mode: observe }\n"
            )
        return path

    def warm(self):
        deadline = time.monotonic() + WARM
        while self.sentinel("warm") != "/warm":
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.proxy.name} forwards nothing")
            time.sleep(0.1)

    def send(self, whole, first=FIRST):
        """Sends bytes, and answers what came until nothing more did."""
        answer = b""
        try:
            with socket.create_connection(("127.0.0.1", self.port)) as client:
                client.settimeout(PATIENCE)
                client.sendall(whole)
                client.settimeout(first)
                while more := client.recv(1 << 16):
                    answer += more
                    client.settimeout(NEXT)
        except OSError:
            pass
        return answer

    def sentinel(self, name):
        """The target that the answer to a harmless request names."""
        head = f"GET /{name} HTTP/1.1\r\nHost: interop.test\r\nConnection: close\r\n\r\n".encode()
        found = re.search(rb"(?im)^x-target: (.*?)\r?$", self.send(head, PATIENCE))
        return found and found[1].decode("latin-1")

    def lines(self, path):
        with open(path, "rb") as file:
            return [json.loads(line.decode("latin-1")) for line in file.read().split(b"\n")[:-1]]


def play(line, requests):
    """Sends all cases; answers those after which another request got the answer to another one, and
    those after which it got none, since the proxy had ended or hung."""
    faults, ended = [], []
    for number, (name, whole, _) in enumerate(requests):
        line.send(whole)
        # A proxy may need another connection to the gateway, so that the first try fails without harm.
        answers = []
        while len(answers) < 3 and (not answers or answers[-1] is None):
            answers.append(line.sentinel(f"sentinel-{number}"))
        if answers[-1] is None:
            ended.append(name)
            line.begin_proxy(len(ended))
        elif answers[-1] != f"/sentinel-{number}":
            faults.append(f"{name}: another request got the answer to {answers[-1]}")
    return faults, ended


class Counts:
    """`judged`: requests of which the gateway has a line. `executed`: those of them that the recorder saw
    whole. `cut`: what the recorder saw in part. `ended`: cases that have ended the proxy, or after which
    it answered nothing.
    """

    ended = ()

    def __init__(self, judged, executed, cut):
        self.judged, self.executed, self.cut = judged, executed, cut


def compare(line, requests):
    """What was executed otherwise than it was judged, by the case."""
    judged, faults, place = {}, [], {}
    current = "before all"
    for entry in line.lines(line.log):
        judged.setdefault(entry["request_id"], []).append(entry)
        place[entry["request_id"]] = current
        found = re.fullmatch(r"/sentinel-(\d+)", entry.get("path", ""))
        if found:
            following = int(found[1]) + 1
            current = requests[following][0] if following < len(requests) else "after all"
    seen, cut = {}, 0
    for record in line.lines(line.records):
        names = [value for name, value in record.get("fields", []) if name.lower() == "x-request-id"]
        if "fault" in record:
            # The gateway ends a connection in the middle of a request that came to no end.
            cut += 1
            # The head may be cut, too, so that there is no name. A client that went away has no status.
            for name in names:
                if any(200 <= entry["status"] < 300 for entry in judged.get(name, [])):
                    faults.append(f"{place[name]}: answered as executed, and it was {record['fault']}")
            continue
        name = names[0] if len(names) == 1 else None
        seen[name] = seen.get(name, 0) + 1
        entries = judged.get(name, [])
        wanted = len(entries) == 1 and difference(entries[0], record)
        if len(entries) != 1 or seen[name] > 1 or wanted:
            faults.append(f"{place.get(name)}: {record['method']} {record['target']} was executed"
                          f" {seen[name]} times, and judged {len(entries)} times: {wanted or ''}")
    judged = {name: entries for name, entries in judged.items()
              if not entries[0].get("path", "").startswith(("/sentinel-", "/warm"))}
    for name, entries in judged.items():
        # What the gateway answers itself names no origin.
        if entries[0]["status"] == 200 and "origin" in entries[0] and name not in seen:
            faults.append(f"{place[name]}: {entries[0]} was answered 200, and nothing was executed")
    return faults, Counts(len(judged), sum(name in seen for name in judged), cut)


def difference(entry, record):
    hosts = [value for name, value in record["fields"] if name.lower() == "host"]
    target = record["target"].partition("?")[0]
    for name, executed in [("method", record["method"]), ("path", target), ("host", hosts[0] if hosts else ""),
                           ("request_bytes", record["length"])]:
        found = entry.get(name) or (0 if name == "request_bytes" else "")
        # The log has no path for a target without one: `*`, and an absolute one that ends with its host.
        if found != executed and not (name == "path" and not found and executed in ("/", "*")):
            return f"{name}: judged {entry.get(name)!r}, executed {executed!r}"
    return None


def examine(proxy, program, folder, requests):
    begun = time.monotonic()
    line = Line(proxy, program, folder)
    try:
        faults, ended = play(line, requests)
        # What the last requests made is in the logs when it is over.
        time.sleep(1)
    finally:
        line.stop()
    found, counts = compare(line, requests)
    counts.ended = ended
    return faults + found, counts, time.monotonic() - begun


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0
    program, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    there = []
    for proxy in PROXIES:
        if proxy.version() and (not wanted or proxy.name in wanted):
            there.append(proxy)
        elif not wanted:
            print(f"interoperability: NOT CHECKED, since it is not installed: {proxy.name}")
    if not there:
        return 2
    requests = load_requests()
    folder = tempfile.mkdtemp(prefix="pg-")
    os.chmod(folder, 0o755)
    end_when_told(None if "INTEROP_KEEP" in os.environ else folder)
    try:
        with concurrent.futures.ThreadPoolExecutor(len(there)) as pool:
            results = list(pool.map(lambda proxy: examine(proxy, program, folder, requests), there))
    finally:
        if "INTEROP_KEEP" not in os.environ:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{'in front':16} {'version':10} {'cases':>6} {'judged':>7} {'executed':>9}"
          f" {'cut short':>10} {'ended it':>9} {'unsafe':>7} {'seconds':>8}")
    for proxy, (faults, counts, seconds) in zip(there, results):
        print(f"{proxy.name:16} {proxy.version():10} {len(requests):6} {counts.judged:7} {counts.executed:9}"
              f" {counts.cut:10} {len(counts.ended):9} {len(faults):7} {seconds:8.1f}")
    for proxy, (faults, counts, _) in zip(there, results):
        if counts.ended:
            print(f"ended or hung: {proxy.name}: {', '.join(counts.ended)}")
        for fault in faults:
            print(f"UNSAFE: {proxy.name}: {fault}")
    return 1 if any(faults for faults, _, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
