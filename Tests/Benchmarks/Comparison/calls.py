"""Unary gRPC calls beside nginx (grpc_pass) and Envoy: processor time for each, and how long they take.

The origin is nghttpd on one thread, which answers with a message of a few bytes and trailers.
"""
import json
import os
import subprocess

from failure import Failure
from gateways import find, free_port
from gauges import cpu_seconds, medians

# Connections of the client, and calls that are under way on each at a time.
LOADS = {
    "32 at a time": (1, 32), "4 at a time": (1, 4), "one at a time": (1, 1),
    "one on each of 32 connections": (32, 1),
}
# Calls of a round.
COUNT = 20_000
MESSAGE = b"\0\0\0\0\5hello"
PATH = "pkg.Service/Call"

NGINX = """upstream calls {{
    server 127.0.0.1:{origin}; keepalive 256; keepalive_requests 1000000000;
  }}
  server {{
    listen 127.0.0.1:{port} http2 backlog=4096; http2_max_requests 1000000000;
    location / {{ grpc_pass grpc://calls; }}
  }}"""

HTTP = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3."
ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
UPSTREAM = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


def systems():
    """Envoy is in no package of Debian's."""
    return ["portcullis", "nginx"] + (["envoy"] if find("envoy") else [])


class Calls:
    """The gateways before one origin, each on one thread."""

    def __init__(self, stand):
        self.stand = stand
        self.origin = free_port()
        os.makedirs(stand.path(os.path.dirname(PATH)))
        for name in (PATH, "message"):
            with open(stand.path(name), "wb") as file:
                file.write(MESSAGE)
        origin = ["nghttpd", "--no-tls", "-n", "1", "-a", "127.0.0.1", "--trailer",
                  "grpc-status: 0", "-d", stand.folder, str(self.origin)]
        stand.launch("calls-origin", origin, self.origin)
        self.running = {system: self._start(system) for system in systems()}

    def _start(self, system):
        port = free_port()
        if system == "nginx":
            body = NGINX.format(origin=self.origin, port=port)
            command = self.stand.nginx_command("calls-nginx", body)
        elif system == "envoy":
            file = self.stand.write("envoy.json", json.dumps(self._envoy(port)))
            command = ["envoy", "--disable-hot-restart", "--concurrency", "1", "-l", "warn", "-c", file]
        else:
            file = self.stand.write("calls.yaml", json.dumps({
                "listen": [{"address": f"127.0.0.1:{port}", "http2": "on"}],
                "event_loops": 1,
                "origins": {"calls": {"servers": [f"127.0.0.1:{self.origin}"], "http2": "on"}},
                "apps": [{"id": "TEAM123456.com.example.bench", "environments": ["production"]}],
                "store": {"sqlite": self.stand.path("calls.db")},
                "log": {"access": "off"},
                "default": {"origin": "calls", "mode": "off"},
            }))
            command = [self.stand.program, "serve", file]
        return self.stand.launch("calls-" + system, command, port).pid, port

    def _envoy(self, port):
        def address(number):
            return {"socket_address": {"address": "127.0.0.1", "port_value": number}}

        routes = [{"match": {"prefix": "/"}, "route": {"cluster": "calls"}}]
        filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": {
            "@type": HTTP + "HttpConnectionManager", "stat_prefix": "calls", "codec_type": "HTTP2",
            "http_filters": [{"name": "router", "typed_config": {"@type": ROUTER}}],
            "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
        }}]
        options = {"@type": "type.googleapis.com/" + UPSTREAM,
                   "explicit_http_config": {"http2_protocol_options": {}}}
        endpoints = [{"lb_endpoints": [{"endpoint": {"address": address(self.origin)}}]}]
        return {"static_resources": {
            "listeners": [{"name": "front", "address": address(port),
                           "filter_chains": [{"filters": filters}]}],
            "clusters": [{
                "name": "calls", "connect_timeout": "5s", "type": "STATIC",
                "typed_extension_protocol_options": {UPSTREAM: options},
                "load_assignment": {"cluster_name": "calls", "endpoints": endpoints},
            }],
        }}

    def measure(self, rounds):
        """Medians of rounds in which the gateways take turns, for each load."""
        return {name: self._rounds(load, rounds) for name, load in LOADS.items()}

    def _rounds(self, load, rounds):
        samples = {system: [] for system in self.running}
        # The first round warms up.
        for number in range(rounds + 1):
            for system, (pid, port) in self.running.items():
                sample = self._sample(pid, port, *load)
                if number > 0:
                    samples[system].append(sample)
        return {system: medians(rows) for system, rows in samples.items()}

    def _sample(self, pid, port, connections, width):
        log = self.stand.path("calls.log")
        if os.path.exists(log):
            os.remove(log)
        command = ["h2load", "-n", str(COUNT), "-c", str(connections), "-m", str(width),
                   "-d", self.stand.path("message"), "-H", "content-type: application/grpc",
                   "-H", "te: trailers", "--log-file", log, f"http://127.0.0.1:{port}/{PATH}"]
        before = cpu_seconds(pid)
        done = subprocess.run(command, capture_output=True, text=True)
        used = cpu_seconds(pid) - before
        with open(log) as file:
            rows = [line.split() for line in file]
        if len(rows) < COUNT or any(row[1] != "200" for row in rows):
            raise Failure(f"h2load: {done.stdout[-500:]}", "run it: " + " ".join(command))
        times = sorted(int(row[2]) for row in rows)
        return {"cpu_us": used * 1e6 / COUNT, "p50_us": times[COUNT // 2],
                "p99_us": times[COUNT * 99 // 100]}


def table(results):
    names = {"portcullis": "Portcullis", "nginx": "nginx", "envoy": "Envoy"}
    shown = list(next(iter(results.values())))
    rows = [["unary gRPC call", *(names[system] for system in shown), "Portcullis to nginx"]]
    kinds = [("cpu_us", "CPU", "{:.1f} µs"), ("p50_us", "p50", "{:.0f} µs"),
             ("p99_us", "p99", "{:.0f} µs")]
    for load, found in results.items():
        for name, what, form in kinds:
            ratio = found["portcullis"][name] / found["nginx"][name]
            rows.append([f"{load}, {what}",
                         *(form.format(found[system][name]) for system in shown), f"{ratio:.2f}"])
    return rows
