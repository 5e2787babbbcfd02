#!/usr/bin/env python3
"""A garden of servers, old or lenient on purpose, each behind a gateway of its own.

usage: compare.py PORTCULLIS [BACKEND...]

Every case of Tests/HTTPScenarios/Cases of which the gateway forwards requests is sent through it
to each server. What the server says it parsed must be what the gateway forwarded, as a strict
recorder in place of the server saw it: as many requests, their methods, targets, fields and
content. Servers that make CGI variables of fields must show the gateway's verdict and no other.

A case that a server takes otherwise is in `listed.json` with its reason, by patterns of the case's
name and of what differs; one that is listed and agrees is an error too. Servers that are not
installed are named and left out. Python servers are looked for in the interpreter that runs this.

Exit status: 0 when all agree, 1 when not, 2 when no server is there.
"""
import base64
import concurrent.futures
import fnmatch
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(HERE, "..", "..", "HTTPScenarios", "Cases")
PATIENCE = 10.0
# The gateway writes these anew between two hops, and servers need not show them to applications.
FRAMING = {"content-length", "transfer-encoding", "connection", "te"}


# --- Cases


def octets(case):
    def decode(value):
        return base64.b64decode(value or "")

    def plain(value):
        return (value or "").encode("latin-1")

    whole = decode(case.get("raw_b64")) + plain(case.get("raw"))
    for part in case.get("parts", []) + case.get("segments", []):
        whole += decode(part.get("b64")) + plain(part.get("raw"))
        repeated = decode(part.get("repeat_b64")) + plain(part.get("repeat"))
        whole += repeated * part.get("count", 0)
    return whole


def load_cases():
    cases = []
    for name in ["cases.jsonl", "more-cases.jsonl"]:
        with open(os.path.join(CASES, name), encoding="utf-8") as lines:
            cases += [json.loads(line) for line in lines]
    return [
        (case["id"], octets(case), len(case["expect"]["messages"]))
        for case in cases
        if case["direction"] == "request" and case["expect"].get("messages")
    ]


def accepted_cases(recorder):
    """The cases of which the gateway forwards all that is to be forwarded, and what it forwards."""
    accepted = []
    for name, whole, count in load_cases():
        recorder.play(whole)
        # A request that was broken off may be logged late; it is none.
        lines = [line for line in recorder.news() if "fault" not in line]
        if lines and len(lines) != count:
            raise RuntimeError(f"{name}: the recorder saw {len(lines)} requests for {count}")
        if lines:
            accepted.append((name, whole, lines))
    return accepted


# --- Processes


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(connect, process, name):
    """Waits until a server takes connections."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            connect().close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError(f"{name} does not take connections")


class Stand:
    """A server and the gateway in front of it."""

    def __init__(self, backend, program, folder):
        self.backend = backend
        self.folder = os.path.join(folder, re.sub("[^a-z]", "", backend.name.lower()))
        os.mkdir(self.folder)
        self.log = os.path.join(self.folder, "log")
        open(self.log, "w").close()
        self.position = 0
        self.processes = []
        try:
            self.begin(program)
        except Exception:
            self.stop()
            raise

    def begin(self, program):
        port = free_port()
        for command in self.backend.commands(port, self.log, self.folder):
            self.start(command)
        wait_for(
            lambda: socket.create_connection(("127.0.0.1", port)),
            self.processes[-1],
            self.backend.name,
        )
        self.socket = os.path.join(self.folder, "socket")
        self.start([program, "serve", self.configuration(port)])
        wait_for(self.connect, self.processes[-1], "portcullis for " + self.backend.name)

    def start(self, command):
        with open(os.path.join(self.folder, "output"), "ab") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
                env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
            )
        self.processes.append(process)

    def configuration(self, port):
        path = os.path.join(self.folder, "portcullis.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                f"listen: [{{ address: \"unix:{self.socket}\" }}]\n"
                f"origins: {{ garden: {{ servers: [\"127.0.0.1:{port}\"], host: client,"
                " first_byte_timeout: 3s } }\n"
                "apps: [{ id: ABCDE12345.com.example.garden, environments: [production] }]\n"
                f"store: {{ sqlite: {self.folder}/portcullis.db }}\n"
                "log: { access: off, level: error }\nlanes: 1\n"
                "default: { origin: garden, mode: observe }\n"
            )
        return path

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        connection.connect(self.socket)
        return connection

    def play(self, whole):
        """Sends the octets of a case and waits for the gateway to end the connection."""
        with self.connect() as client:
            try:
                client.sendall(whole)
                client.shutdown(socket.SHUT_WR)
                while client.recv(1 << 16):
                    pass
            except (ConnectionResetError, BrokenPipeError):
                pass

    def news(self):
        """What the server has logged since the last call."""
        with open(self.log, "rb") as log:
            log.seek(self.position)
            lines = log.read()
            self.position = log.tell()
        return [json.loads(line) for line in lines.splitlines()]

    def stop(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


# --- Servers


def find(name):
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


def first_line(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    found = re.search(r"\d+(\.\d+)+", done.stdout.decode("latin-1"))
    return found.group() if found else "?"


class PythonServer:
    def __init__(self, name, package=None, environment=None):
        self.name = name
        self.kind = name.split(",")[0].replace(".", "_")
        self.package = package
        self.environment = environment or {}

    def version(self):
        if not self.package:
            return "of Python " + sys.version.split()[0]
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return None

    def commands(self, port, log, _):
        settings = [f"{key}={value}" for key, value in self.environment.items()]
        script = os.path.join(HERE, "backends.py")
        yield ["env", *settings, sys.executable, script, self.kind, str(port), log]


class Node:
    def __init__(self, name, *options):
        self.name = name
        self.options = options

    def version(self):
        return find("node") and first_line(["node", "--version"])

    def commands(self, port, log, _):
        yield ["node", *self.options, os.path.join(HERE, "echo.js"), str(port), log]


class Recorder:
    """In the place of a server: a strict reader of what the gateway forwards."""

    name = "recorder"

    def commands(self, port, log, _):
        yield [sys.executable, os.path.join(HERE, "recorder.py"), str(port), log]


class Front:
    """A server in C, in front of an application that is asked over SCGI."""

    def __init__(self, name, program, version):
        self.name = name
        self.program = program
        self.flag = version

    def version(self):
        path = find(self.program)
        return path and first_line([path, self.flag])

    def commands(self, port, log, folder):
        scgi = free_port()
        yield [sys.executable, os.path.join(HERE, "backends.py"), "scgi", str(scgi), log]
        path = os.path.join(folder, "server.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(getattr(self, self.program)(port, scgi, folder))
        options = {"nginx": ["-p", folder, "-c"], "apache2": ["-DFOREGROUND", "-f"],
                   "lighttpd": ["-D", "-m", self.modules("lighttpd"), "-f"]}
        yield [find(self.program), *options[self.program], path]

    def modules(self, *names):
        """The folder of the server's modules, beside its program or where Debian has it."""
        root = os.path.dirname(os.path.dirname(find(self.program)))
        for top in [root, "/usr"]:
            for folder in ["lib", "lib64"]:
                path = os.path.join(top, folder, *names)
                if os.path.isdir(path):
                    return path
        return os.path.join("/usr/lib", *names)

    def nginx(self, port, scgi, folder):
        parameters = {"REQUEST_METHOD": "$request_method", "REQUEST_URI": "$request_uri",
                      "CONTENT_LENGTH": "$content_length", "CONTENT_TYPE": "$content_type"}
        lines = "".join(f"scgi_param {key} {value};\n" for key, value in parameters.items())
        temporary = "".join(
            f"{kind}_temp_path {folder}/{kind};\n"
            for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        )
        return (
            f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log {folder}/error;\n"
            f"events {{}}\nhttp {{\naccess_log off;\n{temporary}underscores_in_headers on;\n"
            "ignore_invalid_headers off;\nmerge_slashes off;\nclient_max_body_size 0;\n"
            f"server {{\nlisten 127.0.0.1:{port};\nlocation / {{\n"
            f"scgi_pass 127.0.0.1:{scgi};\nscgi_param SCGI 1;\n{lines}}}\n}}\n}}\n"
        )

    def apache2(self, port, scgi, folder):
        modules = self.modules("apache2", "modules")
        load = "".join(
            f"<IfModule !{name}_module>\nLoadModule {name}_module {modules}/mod_{name}.so\n"
            "</IfModule>\n"
            for name in ["mpm_event", "authz_core", "unixd", "proxy", "proxy_scgi"]
        )
        return (
            f"ServerRoot {folder}\nPidFile {folder}/pid\nErrorLog {folder}/error\n{load}"
            "User nobody\nGroup nogroup\n"
            f"Listen 127.0.0.1:{port}\nServerName garden.test\nHttpProtocolOptions Unsafe\n"
            "AllowEncodedSlashes NoDecode\nMergeSlashes Off\nStartServers 1\n"
            f"KeepAliveTimeout 30\nMaxKeepAliveRequests 0\nProxyPass / scgi://127.0.0.1:{scgi}/\n"
        )

    def lighttpd(self, port, scgi, folder):
        return (
            f"server.document-root = \"{folder}\"\nserver.port = {port}\n"
            "server.bind = \"127.0.0.1\"\nserver.modules = ( \"mod_scgi\" )\n"
            f"server.errorlog = \"{folder}/error\"\nserver.stream-request-body = 0\n"
            "server.max-keep-alive-idle = 30\nserver.max-keep-alive-requests = 100000\n"
            "server.http-parseopts = ( \"header-strict\" => \"disable\","
            " \"host-strict\" => \"disable\", \"url-normalize\" => \"disable\" )\n"
            "scgi.server = ( \"/\" => (( \"host\" => \"127.0.0.1\","
            f" \"port\" => {scgi}, \"check-local\" => \"disable\" )) )\n"
        )


BACKENDS = [
    Front("nginx", "nginx", "-v"),
    Front("Apache, Unsafe", "apache2", "-v"),
    Front("lighttpd, lenient", "lighttpd", "-v"),
    Node("Node"),
    Node("Node, lenient", "--insecure-http-parser"),
    PythonServer("gunicorn", "gunicorn"),
    PythonServer("aiohttp", "aiohttp"),
    PythonServer("aiohttp, pure Python", "aiohttp", {"AIOHTTP_NO_EXTENSIONS": "1"}),
    PythonServer("tornado", "tornado"),
    PythonServer("twisted", "twisted"),
    PythonServer("uvicorn", "uvicorn"),
    PythonServer("waitress", "waitress"),
    PythonServer("cheroot", "cheroot"),
    PythonServer("werkzeug", "werkzeug"),
    PythonServer("wsgiref"),
    PythonServer("http.server"),
]


# --- Judging


def grouped(fields, key):
    """Values by name; those of one name joined, white space at list separators aside."""
    found = {}
    for name, value in fields:
        if key(name) not in FRAMING:
            found.setdefault(key(name), []).append(value.strip(" \t"))
    return {name: re.sub(r"\s*[,;]\s*", ",", ",".join(values)) for name, values in found.items()}


def variable(name):
    """A field's name as CGI variables tell it apart."""
    name = re.sub("[^a-z0-9]", "-", name.lower())
    return name[5:] if name.startswith("http-") else name


def difference(sent, seen):
    """What a server saw otherwise than it was sent; `None` when nothing."""
    if seen["method"] != sent["method"]:
        return f"method {seen['method']} for {sent['method']}"
    if (seen["length"], seen["sha256"]) != (sent["length"], sent["sha256"]):
        return f"{seen['length']} octets of content for {sent['length']}"
    target = sent["target"]
    if "decoded" in seen["how"]:
        path, mark, query = target.partition("?")
        target = urllib.parse.unquote_to_bytes(path).decode("latin-1")
        target += mark + query if query else ""
    if seen["target"] != target:
        return f"target {seen['target']!r} for {target!r}"
    key = str.lower if seen["how"] == "raw" else variable
    expected, found = grouped(sent["fields"], key), grouped(seen["fields"], key)
    if found.get("app-attest-verdict") != "refuse":
        return f"the verdict {found.get('app-attest-verdict')!r}"
    if seen["how"] != "raw" and "content-type" not in expected:
        # RFC 3875 has a default for it, which wsgiref and lighttpd give.
        found.pop("content-type", None)
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name, "") != found.get(name, ""):
            return f"{name}: {found.get(name)!r} for {expected.get(name)!r}"
    return None


def compare(expected, seen):
    """What differed in a case; a server may refuse a request, but not see another one."""
    rest, refused = list(expected), []
    for line in seen:
        faults = [difference(sent, line) for sent in rest]
        if None not in faults:
            return faults[0] if faults else f"a request more: {line['method']} {line['target']}"
        place = faults.index(None)
        refused += rest[:place]
        rest = rest[place + 1:]
    refused += rest
    return "refused: " + outline(refused[0]) if refused else None


def outline(request):
    names = {name.lower() for name, _ in request["fields"]}
    framing = "without length"
    if "transfer-encoding" in names:
        framing = "chunked"
    elif "content-length" in names:
        framing = "with length"
    return f"{request['method']} {request['target']} {framing}"


def run(stand, accepted):
    """Sends all accepted cases; answers what differed, by the case, and how long it took."""
    faults = {}
    last = None
    begun = time.monotonic()
    for name, whole, expected in accepted:
        if stand.news():
            faults[last] = "a request more, late"
        stand.play(whole)
        fault = compare(expected, stand.news())
        if fault and fault.startswith("refused"):
            # It may have ended the connection, after an earlier case, as this one was sent.
            stand.play(whole)
            fault = compare(expected, stand.news())
        if fault:
            faults[name] = fault
        last = name
    return faults, time.monotonic() - begun


def reasons(backend):
    with open(os.path.join(HERE, "listed.json"), encoding="utf-8") as file:
        return json.load(file).get(backend, {})


def judge(backend, faults, names):
    """What is wrong with the list or the server; the number of listed disagreements."""
    wrong, listed = [], 0
    used = set()
    for name, fault in faults.items():
        found = [pattern for pattern in reasons(backend) if matches(name, fault, pattern)]
        used.update(found)
        if found:
            listed += 1
        else:
            wrong.append(f"{backend}: {name}: {fault}")
    for pattern in reasons(backend):
        if pattern not in used:
            wrong.append(f"{backend}: {pattern} agrees now; take it off the list")
    return wrong, listed


def matches(name, fault, pattern):
    case, _, what = pattern.partition(": ")
    return fnmatch.fnmatchcase(name, case) and fnmatch.fnmatchcase(fault, what or "*")


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0
    program, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    there, missing = [], []
    for backend in BACKENDS:
        if not wanted or backend.name in wanted:
            (there if backend.version() else missing).append(backend)
    for backend in missing:
        print(f"garden: NOT CHECKED, since it is not installed: {backend.name}")
    if not there:
        return 2
    stands = []
    folder = tempfile.mkdtemp(prefix="pg-")
    try:
        recorder = Stand(Recorder(), program, folder)
        stands.append(recorder)
        accepted = accepted_cases(recorder)
        for backend in there:
            stands.append(Stand(backend, program, folder))
        with concurrent.futures.ThreadPoolExecutor(len(there)) as pool:
            results = list(pool.map(lambda stand: run(stand, accepted), stands[1:]))
    finally:
        for stand in reversed(stands):
            stand.stop()
        if "GARDEN_KEEP" not in os.environ:
            shutil.rmtree(folder, ignore_errors=True)
    return report(there, results, accepted)


def report(backends, results, accepted):
    wrong = []
    print(f"\n{'backend':22} {'version':20} {'cases':>6} {'agreed':>7} {'listed':>7} {'wrong':>6}"
          f" {'seconds':>8}")
    for backend, (faults, seconds) in zip(backends, results):
        found, listed = judge(backend.name, faults, accepted)
        wrong += found
        agreed = len(accepted) - len(faults)
        print(
            f"{backend.name:22} {backend.version():20} {len(accepted):6} {agreed:7}"
            f" {listed:7} {len(faults) - listed:6} {seconds:8.1f}"
        )
    print()
    for backend in backends:
        for pattern, reason in reasons(backend.name).items():
            print(f"listed: {backend.name}: {pattern}: {reason}")
    for line in wrong:
        print("WRONG:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
