#!/usr/bin/env python3
"""Follows a request's trace through Envoy, the gateway and an origin, as OpenTelemetry's own messages read it.

usage: traces.py PORTCULLIS

Envoy begins the trace and passes it on in traceparent, the gateway verifies the request and passes it on, and the origin
reads the field that arrives. All three report to one collector: Envoy in protobuf, the gateway and the origin in JSON.
spans.py reads what came. Each span must be the child of the one before, in one trace. A second request has no proof:
its trace ends at the gateway. Prints both traces as a table.

Exit status: 0 when both are as they should be, 1 when something is WRONG, 2 when Envoy or the judge is not there.
"""
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from backends.backend import find
from client import Client, head
from device import APP, Device
from processes import Processes, end_when_told, free_port
from report import table

HERE = os.path.dirname(os.path.abspath(__file__))
DOWNLOADED = os.path.join(HERE, "..", "..", ".build", "proxies", "bin")
PATIENCE = 30.0
TARGET = "/v1/orders?item=lamp"
KINDS = {1: "internal", 2: "server", 3: "client"}
CONFIGURATION = """\
listen: [{{ address: "127.0.0.1:{gateway}" }}]
trusted_proxies: [127.0.0.1/32]
origins: {{ shop: {{ servers: ["127.0.0.1:{origin}"] }} }}
apps: [{{ id: {app}, environments: [production] }}]
store: {{ sqlite: {folder}/portcullis.db }}
tracing: {{ endpoint: "http://127.0.0.1:{collector}", service_name: portcullis, ratio: 0% }}
log: {{ access: {folder}/access.log, level: error }}
event_loops: 1
default: {{ mode: deny }}
rules:
  - {{ id: orders, match: {{ path: /v1/orders }}, origin: shop, mode: enforce, sign: [method, target] }}
"""


def envoy_settings(port, gateway, collector):
    """Envoy that records every request by OTLP/HTTP, with a span of its own for the call to the gateway."""
    def cluster(name, number):
        address = {"socket_address": {"address": "127.0.0.1", "port_value": number}}
        return {"name": name, "type": "STATIC", "connect_timeout": "5s", "load_assignment": {
            "cluster_name": name, "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}]}}

    filters = "type.googleapis.com/envoy.extensions.filters"
    manager = {
        "@type": f"{filters}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "traces",
        "http_filters": [{"name": "envoy.filters.http.router",
                          "typed_config": {"@type": f"{filters}.http.router.v3.Router"}}],
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
            {"match": {"prefix": "/"}, "route": {"cluster": "gateway"}}]}]},
        "tracing": {"spawn_upstream_span": True, "provider": {
            "name": "envoy.tracers.opentelemetry", "typed_config": {
                "@type": "type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig",
                "service_name": "envoy", "http_service": {"http_uri": {
                    "uri": f"http://127.0.0.1:{collector}/v1/traces", "cluster": "collector", "timeout": "5s"}}}}},
    }
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    return {"static_resources": {
        "clusters": [cluster("gateway", gateway), cluster("collector", collector)],
        "listeners": [{"address": address, "filter_chains": [{"filters": [
            {"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}]}],
    }}


class Server(ThreadingHTTPServer):
    daemon_threads = True


def collector(folder):
    """Keeps the content of each call in a file, whose ending says its form."""
    lock, count = threading.Lock(), [0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            content = self.content()
            form = "json" if self.headers["Content-Type"] == "application/json" else "pb"
            with lock:
                count[0] += 1
                # The judge reads the folder: a file appears when it is whole.
                draft = folder + ".new"
                with open(draft, "wb") as file:
                    file.write(content)
                os.rename(draft, os.path.join(folder, f"{count[0]}.{form}"))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def content(self):
            """Envoy sends its own in chunks, which this class of Python's does not read."""
            if "Content-Length" in self.headers:
                return self.rfile.read(int(self.headers["Content-Length"]))
            whole = b""
            while size := int(self.rfile.readline(), 16):
                whole += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return whole

        def log_message(self, *_):
            pass

    return Server(("127.0.0.1", 0), Handler)


def origin(port):
    """An application that continues the trace of traceparent (W3C Trace Context, "traceparent")."""
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            began = time.time_ns()
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()
            read = re.fullmatch(r"00-([0-9a-f]{32})-([0-9a-f]{16})-01", self.headers.get("traceparent", ""))
            if read:
                tell(port, "origin", {
                    "traceId": read[1], "parentSpanId": read[2], "spanId": secrets.token_hex(8), "kind": 2,
                    "name": "orders", "startTimeUnixNano": str(began), "endTimeUnixNano": str(time.time_ns()),
                    "attributes": [attribute("app_attest.verdict", self.headers.get("App-Attest-Verdict", ""))]})

        def log_message(self, *_):
            pass

    return Server(("127.0.0.1", 0), Handler)


def attribute(key, value):
    return {"key": key, "value": {"stringValue": value}}


def tell(port, service, span):
    """Reports one span by OTLP/HTTP."""
    content = json.dumps({"resourceSpans": [{
        "resource": {"attributes": [attribute("service.name", service)]}, "scopeSpans": [{"spans": [span]}]}]}).encode()
    with Client(socket.create_connection(("127.0.0.1", port))) as client:
        fields = [("Host", "collector"), ("Content-Type", "application/json"), ("Content-Length", len(content))]
        client.send(head("POST", "/v1/traces", fields) + content)
        client.answer("POST")


def read(folder):
    """All spans so far, as the judge reads them; None where it is not installed."""
    done = subprocess.run([sys.executable, os.path.join(HERE, "spans.py"), folder], capture_output=True, text=True,
                          timeout=60, check=False)
    if done.returncode == 77:
        return None
    if done.returncode != 0:
        raise RuntimeError(f"spans.py: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def wait_for(folder, status, names):
    """The trace of the request that was answered so, once each of the services has told its spans."""
    deadline = time.monotonic() + PATIENCE
    while True:
        spans = read(folder)
        for trace in {span["trace"] for span in spans}:
            own = [span for span in spans if span["trace"] == trace]
            codes = {str(span["attributes"].get("http.response.status_code", "")) for span in own}
            if status in codes and names <= {span["resource"].get("service.name") for span in own}:
                return own
        if time.monotonic() > deadline:
            raise RuntimeError(f"no trace of the answer {status} by {sorted(names)}: {spans}")
        time.sleep(0.1)


def chain(spans):
    """The spans from the trace's beginning to its last child, by their parents; others are beside them."""
    by_parent = {}
    for span in spans:
        by_parent.setdefault(span["parent"], []).append(span)
    found, own = [], by_parent.get("", [])
    while own:
        # A span that has children goes on; among those that have none, the last.
        own.sort(key=lambda span: (span["span"] in by_parent, span["began"]))
        found.append(own[-1])
        own = by_parent.get(own[-1]["span"], [])
    return found


def show(title, spans):
    """Prints a trace, each span below its parent."""
    start = min(span["began"] for span in spans)
    rows = [["service", "span", "kind", "id", "parent", "at ms", "ms", "what it says"]]

    def add(parent, depth):
        for span in sorted((one for one in spans if one["parent"] == parent), key=lambda one: one["began"]):
            said = [f"{name.rpartition('.')[2]}={span['attributes'][name]}" for name in (
                "http.response.status_code", "portcullis.rule", "portcullis.verdict", "portcullis.reason",
                "portcullis.platform", "app_attest.verdict") if name in span["attributes"]]
            rows.append([
                span["resource"].get("service.name", ""), "  " * depth + span["name"], KINDS.get(span["kind"], "?"),
                span["span"], span["parent"] or "-", f"{(span['began'] - start) / 1e6:.2f}",
                f"{(span['ended'] - span['began']) / 1e6:.2f}", " ".join(said)])
            add(span["span"], depth + 1)

    add("", 0)
    print(f"\n{title}: trace {spans[0]['trace']}\n")
    table(rows)


def faults(verified, refused):
    """What is wrong with the two traces."""
    found = [(span["resource"].get("service.name"), KINDS.get(span["kind"])) for span in chain(verified)]
    wanted = [("envoy", "server"), ("envoy", "client"), ("portcullis", "server"), ("portcullis", "client"),
              ("origin", "server")]
    if found != wanted:
        yield f"the verified request went {found}"
    for spans, verdict in [(verified, "pass"), (refused, "refuse")]:
        said = [span["attributes"].get("portcullis.verdict") for span in spans]
        if [one for one in said if one] != [verdict]:
            yield f"the gateway said {said}, not {verdict}"
    if not any(span["attributes"].get("app_attest.verdict") == "pass" for span in verified):
        yield "the origin was not told the verdict"
    if "portcullis.judge" not in {span["name"] for span in verified}:
        yield "no span of judging"
    for spans in (verified, refused):
        began = {span["span"]: span["began"] for span in spans}
        for span in spans:
            # One machine has one clock; Envoy's is read in microseconds.
            early = began.get(span["parent"], 0) - span["began"]
            if early > 1_000_000:
                yield f"{span['name']} begins {early / 1e6:.2f} ms before its parent"
    last = chain(refused)[-1]
    if last["resource"].get("service.name") != "portcullis" \
            or any(span["resource"].get("service.name") == "origin" for span in refused):
        yield f"the refused request's trace ends at {last['resource']}"


def ask(port, fields=()):
    with Client(socket.create_connection(("127.0.0.1", port))) as client:
        client.send(head("GET", TARGET, [("Host", "api.example.test"), *fields]))
        answer = client.answer("GET")
        return answer and answer.status


def run(program, envoy, folder):
    """Whether both traces are as they should be."""
    calls = os.path.join(folder, "calls")
    os.mkdir(calls)
    servers = [collector(calls)]
    servers.append(origin(servers[0].server_port))
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    port, gateway, told = free_port(), free_port(), servers[0].server_port
    device = Device()
    files = {
        "portcullis.yaml": CONFIGURATION.format(gateway=gateway, origin=servers[1].server_port, collector=told,
                                                folder=folder, app=APP),
        "keys": device.import_line(), "envoy.json": json.dumps(envoy_settings(port, gateway, told)),
    }
    paths = {name: os.path.join(folder, name) for name in files}
    for name, text in files.items():
        with open(paths[name], "w", encoding="utf-8") as file:
            file.write(text)
    subprocess.run([program, "keys", "import", "--config", paths["portcullis.yaml"], paths["keys"]], check=True,
                   capture_output=True, timeout=60)
    processes = Processes(os.path.join(folder, "output"))
    try:
        processes.start([program, "serve", paths["portcullis.yaml"]])
        processes.wait_port(gateway, "portcullis")
        processes.start([envoy, "-c", paths["envoy.json"], "--concurrency", "1", "--disable-hot-restart", "-l", "error"])
        processes.wait_port(port, "Envoy")
        lines = f"portcullis-request-v1\nGET\n{TARGET}\n-\n-\n".encode()
        statuses = (ask(port, [("App-Attest-Key-Id", device.key_id),
                               ("App-Attest-Assertion", device.assertion(lines))]), ask(port))
        if statuses != (200, 401):
            raise RuntimeError(f"the requests were answered {statuses}")
        verified = wait_for(calls, "200", {"envoy", "portcullis", "origin"})
        refused = wait_for(calls, "401", {"envoy", "portcullis"})
    finally:
        processes.stop()
        for server in servers:
            server.shutdown()
    show("A verified request through Envoy, the gateway and the origin", verified)
    show("A request without a proof", refused)
    wrong = list(faults(verified, refused))
    for fault in wrong:
        print(f"WRONG: traces: {fault}")
    print(f"traces: {len(verified)} spans of a verified request, {len(refused)} of a refused one, {len(wrong)} WRONG")
    return not wrong


def main():
    envoy = find("envoy") or shutil.which("envoy", path=DOWNLOADED)
    if not envoy:
        print("\n!!! interoperability: NOT CHECKED, since it is not installed: envoy, for traces\n")
        return 2
    folder = tempfile.mkdtemp(prefix="pg-")
    end_when_told(folder)
    try:
        if read(folder) is None:
            print("\n!!! interoperability: NOT CHECKED, since it is not installed: opentelemetry-proto, for traces\n")
            return 2
        return 0 if run(os.path.abspath(sys.argv[1]), envoy, folder) else 1
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"WRONG: traces: it does not run: {error}")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
