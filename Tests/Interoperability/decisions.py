#!/usr/bin/env python3
"""Compares what applications execute behind other proxies, which ask the gateway for decisions.

usage: decisions.py PORTCULLIS

Each proxy runs its example of deploy/decisions, with other addresses and nothing else changed, in
front of applications that can be led around it: hypercorn and Apache take over a connection by
Upgrade: h2c, PHP takes other names of a field for that field, and all of them take other spellings
of a path for that path. What ran must be what was signed. Where a proxy sends content with its
question, that includes the content.

Exit status: 0 when all held, 1 when something is WRONG or does not start, 2 when no proxy is there.
"""
import concurrent.futures
import os
import shutil
import socket
import sys
import tempfile
import time

import h2.config
import h2.connection
import h2.exceptions

import issuer
import judge
from attacks.attack import NotApplicable
from attacks.bodies import variant
from attacks.cookies import LINES, PLAIN, field, fields as cookies
from attacks.fields import MARKS
from attacks.genuine import FORM, expect_success, order, post
from attacks.spelling import METHODS, PATHS, SCRIPTS, script, unsigned
from backends import BACKENDS
from backends.apache import MODULES, ModWSGI
from backends.backend import find
from client import Client, chunk, head
from device import Device
from gateway import Gateway
from processes import Processes, end_when_told, free_port
from stand import Stand

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "deploy", "decisions")
DOWNLOADED = os.path.join(HERE, "..", "..", ".build", "proxies", "bin")
# What each example asks by, its files, and how it is started; the first file is its own.
PROXIES = {
    "nginx": ("auth_request", ["nginx.conf"], ["-c", "main.conf"]),
    "haproxy": ("auth_request", ["haproxy.cfg", "haproxy.lua"], ["-db", "-f", "haproxy.cfg"]),
    "caddy": ("forward_auth", ["Caddyfile"],
              ["run", "--config", "Caddyfile", "--adapter", "caddyfile"]),
    "traefik": ("forward_auth", ["traefik.yaml", "traefik-routes.yaml"],
                ["--configfile=traefik.yaml"]),
    "envoy": ("ext_authz", ["envoy.yaml"],
              ["--disable-hot-restart", "--concurrency", "1", "-c", "envoy.yaml"]),
    "envoy-grpc": ("ext_authz_grpc", ["envoy-grpc.yaml"],
                   ["--disable-hot-restart", "--concurrency", "1", "-c", "envoy-grpc.yaml"]),
}
# Those that ask with the content, so that rules can sign it.
WITH_CONTENT = {"haproxy", "traefik", "envoy", "envoy-grpc"}
APPLICATIONS = ["hypercorn ASGI, Django", "php -S"]
SIGN = "origin: interop, mode: enforce, sign: [method, target, challenge]"
RULES = f"""\
  - {{ id: pay, match: {{ method: [POST], path: /pay }}, {SIGN}, headers: [idempotency-key] }}
  - {{ id: profile, match: {{ method: [GET], path: /profile }}, {SIGN} }}
  - {{ id: item, match: {{ method: [DELETE], path: /item }}, {SIGN} }}
  - {{ id: orders, match: {{ path: /v1/orders }}, {SIGN}, preflight: forward }}
  - {{ id: upload, match: {{ method: [POST], path: /upload }}, {SIGN} }}
  - {{ id: place, match: {{ path: /place_order }}, {SIGN} }}
  - {{ id: script, match: {{ path: /api/pay.php }}, {SIGN} }}
  - {{ id: folder, match: {{ path: /api/ }}, {SIGN} }}
  - {{ id: private, match: {{ path: /files/private/** }}, {SIGN}, allow_encoded: [slash] }}
  - {{ id: files, match: {{ path: /files/** }}, origin: interop, mode: observe,
      sign: [method, target, challenge], allow_encoded: [slash] }}
  - {{ id: hosted, match: {{ path: /hosted }}, mode: deny }}
  - {{ id: page, match: {{ method: [POST], path: /told }}, origin: interop, mode: enforce,
      accept: [page] }}
  - {{ id: others, match: {{ path: "/**" }}, origin: interop, mode: observe,
      sign: [method, target, challenge] }}
"""
UPLOAD = f"match: {{ method: [POST], path: /upload }}, {SIGN}"
SIGNED_UPLOAD = UPLOAD.replace(", sign: [method, target, challenge]",
                               ", body: { digest: held, limit: 4MiB }")
NAMES = ["App-Attest-Verdict", "App-Attest-Key-Id", "X-HTTP-Method-Override", "X-Original-URL",
         "Idempotency-Key"]
# By these some applications execute another method, path or host than those of the request, leave
# a check out, or take a certificate for shown. The gateway forwards none of them as the client sent
# it, and neither may an example.
OVERRIDES = [
    "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-Method",
    "X-Original-URL", "X-Original-URI", "X-Rewrite-URL", "X-WAWS-Unencoded-URL", "X-Script-Name",
    "Script-Name", "X-Envoy-Original-Path", "X-Host", "X-Original-Host", "X-HTTP-Host-Override",
    "Disguised-Host", "Forwarded", "X-Forwarded", "X-Forwarded-Host", "X-Forwarded-Port",
    "X-Forwarded-Prefix", "X-Forwarded-Scheme", "X-Forwarded-Server", "X-Forwarded-Ssl",
    "X-Forwarded-Client-Cert", "X-Middleware-Subrequest", "X-Sendfile-Type", "X-Accel-Mapping",
    "Proxy",
]
SETTINGS = "AAMAAABkAARAAAAAAAIAAAAA"
FORGED = [("app-attest-verdict", "pass"), ("app-attest-key-id", "forged")]
PATIENCE = 20.0
SIDE_BY_SIDE = 5
# How long is waited for what must not come.
LATE = 0.5


class HTTP2Apache(ModWSGI):
    """Apache that takes over a connection by Upgrade and by the preface."""

    def __init__(self):
        super().__init__("mod_http2, Apache, Django", daemon=False)

    def settings(self, port, folder):
        return super().settings(port, folder) + (
            f"LoadModule http2_module {MODULES}/mod_http2.so\n"
            "Protocols h2c http/1.1\nH2Direct on\nH2Upgrade on\n"
        )


class Deciding(Gateway):
    """A gateway that other proxies ask, with a listener for clients too."""

    form = ""
    has_content = False

    def configuration(self, origin, limits, address, apple):
        self.asked = free_port()
        whole = super().configuration(origin, limits, address, apple)
        before, _ = whole.split("default:")
        content = ", content: whole" if self.has_content else ""
        rules = RULES.replace(UPLOAD, SIGNED_UPLOAD) if self.has_content else RULES
        return (
            before.replace("origins:", f"  - {{ address: 127.0.0.1:{self.asked}, decides:"
                           f" {self.form}{content} }}\norigins:", 1)
            + f"default: {{ mode: deny }}\nrules:\n{rules}"
        )


class Front(Stand):
    """One proxy in front of one application. What attacks ask goes to the proxy."""

    def __init__(self, proxy, backend, program, folder, devices):
        self.proxy = proxy
        super().__init__(backend, program, folder, devices)

    def begin(self, program, devices):
        form, files, words = PROXIES[self.proxy]
        self.port = free_port()
        environment = self.backend.environment() | {"INTEROP_LOG": self.log}
        for command in self.backend.commands(self.port, self.folder):
            self.processes.start(command, environment)
        self.processes.wait_port(self.port, self.backend.name)
        kind = {"form": form, "has_content": self.proxy in WITH_CONTENT}
        self.gateway = type("Deciding", (Deciding,), kind)(
            program, self.folder, self.port, devices
        )
        self.gateway.wait()
        self.front = free_port()
        place = os.path.join(self.folder, self.proxy)
        os.mkdir(place)
        os.chmod(place, 0o777)
        for name in files:
            self.copy(name, place)
        if self.proxy == "nginx":
            self.nginx(place)
            words = ["-p", place, *words]
        # They read their files where they are started.
        self.processes.start(
            ["sh", "-c", 'cd "$0" && exec "$@"', place, program_of(self.proxy), *words],
            # Programs in Go collect garbage several times while they start.
            {"XDG_CONFIG_HOME": place, "XDG_DATA_HOME": place, "GOGC": "400"},
        )
        self.processes.wait(self.connect, self.proxy)
        # Traefik listens before it has routes.
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            answer = self.ask("GET", "/open")
            if answer and answer.status == 200:
                return
            time.sleep(0.05)
        raise RuntimeError(f"{self.proxy} does not serve: {answer and answer.status}")

    def copy(self, name, place):
        with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
            text = file.read()
        for number, port in [(9000, self.gateway.asked), (8080, self.gateway.port),
                             (8081, self.port), (8000, self.front)]:
            for mark, end in [("127.0.0.1:", ""), ("http://:", ""), ("port_value: ", " ")]:
                text = text.replace(f"{mark}{number}{end}", f"{mark}{port}{end}")
        with open(os.path.join(place, name), "w", encoding="utf-8") as file:
            file.write(text)

    def nginx(self, place):
        temporary = "".join(
            f"{kind}_temp_path {place}/{kind};\n"
            for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        )
        with open(os.path.join(place, "main.conf"), "w", encoding="utf-8") as file:
            file.write(
                f"daemon off;\nmaster_process off;\npid {place}/pid;\nerror_log {place}/error;\n"
                f"events {{}}\nhttp {{\naccess_log off;\n{temporary}"
                f"include {place}/nginx.conf;\n}}\n"
            )

    def connect(self):
        return Client(socket.create_connection(("127.0.0.1", self.front)))

    def signed(self, method, target, fields=()):
        """The fields of a genuine request; its content is not signed."""
        def lines(challenge):
            text = ["portcullis-request-v1", method, target, "-", challenge]
            if target.startswith("/pay"):
                value = dict(fields).get("idempotency-key")
                text.append("idempotency-key" + (f": {value}" if value else ""))
            return "".join(line + "\n" for line in text).encode()

        return [*self.proof(method, target, fields=fields, signed=lines)[:-1], *fields]


def program_of(proxy):
    name = proxy.split("-")[0]
    return find(name) or shutil.which(name, path=DOWNLOADED)


# Attacks; each answers what went wrong, where the records alone do not say it

def genuine(stand, token):
    target = f"/profile?t={token}"
    stand.promise(token, "GET", target)
    answer = stand.ask("GET", target, stand.signed("GET", target))
    return None if answer and answer.status == 200 else f"it got {answer and answer.status}"


def speak(connection, client, token, said=b""):
    """Asks for what is protected, in HTTP/2, and waits for what comes."""
    try:
        stream = connection.get_next_available_stream_id()
        for method, path in [("POST", "/pay"), ("GET", "/profile"), ("DELETE", "/item")]:
            names = [(":method", method), (":path", f"{path}?t={token}"), (":scheme", "http"),
                     (":authority", "interop.test"), *FORGED]
            connection.send_headers(stream, names, end_stream=True)
            stream += 2
        client.send(said + connection.data_to_send())
        client.connection.settimeout(LATE)
        while client.more():
            connection.receive_data(client.rest)
            client.rest = b""
            client.send(connection.data_to_send())
    except h2.exceptions.ProtocolError:
        pass


def tunnel(upgrade, more):
    """A request that is admitted asks for another protocol, which then carries the others."""
    def run(stand, token):
        target = f"/open?t={token}"
        fields = [("Host", "interop.test"), ("Upgrade", upgrade), *more]
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        with stand.connect() as client:
            client.send(head("GET", target, fields))
            line = client.line()
            while client.line():
                pass
            if b" 101 " in line + b" ":
                connection.initiate_upgrade_connection()
                speak(connection, client, token)
                return f"the connection was handed over: {line.decode('latin-1')}"
        return None

    return run


def preface(stand, token):
    """HTTP/2 without a word before. Where the proxy speaks it, each request is asked about."""
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    connection.initiate_connection()
    with stand.connect() as client:
        speak(connection, client, token)


def preface_behind(stand, token):
    """The preface behind a request, where a proxy may have stopped reading requests."""
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    connection.initiate_connection()
    with stand.connect() as client:
        first = head("GET", f"/open?t={token}", [("Host", "interop.test")])
        speak(connection, client, token, first)


def twins(mark, method, target, ask=()):
    """Names that differ in a mark from those that count, in a genuine request or in any."""
    def run(stand, token):
        whole = f"{target}?t={token}"
        fields = [(name.replace("-", mark), "forged") for name in NAMES]
        if method == "POST":
            stand.promise(token, method, whole, b"", [("idempotency-key", None)])
            fields += stand.signed(method, whole)
        # One of them alone may be refused, all others are then unseen.
        for field in [[one] for one in fields[:len(NAMES)]] if method == "GET" else [fields]:
            stand.ask(method, whole, [*field, *ask])
        for record in stand.records_of(token):
            for name, value in record.get("fields", {}).items():
                if "forged" in str(value):
                    return f"the application read {name}: {value}"
        return None

    return run


def rewritten(signed, *lines):
    """A signed field that the proxy may write in its question as it was signed."""
    def run(stand, token):
        target, name = f"/pay?t={token}", "idempotency-key"
        stand.promise(token, "POST", target, b"", [(name, signed)])
        fields = [field for field in stand.signed("POST", target, [(name, signed)])
                  if field[0] != name]
        stand.ask("POST", target, [*fields, *[(name, line) for line in lines]])

    return run


def called(stand, token):
    """A refusal of a gRPC call has the status 200, by which a proxy could admit it."""
    for kind in ["application/grpc", "application/grpc-web"]:
        for method, path in [("POST", "/pay"), ("POST", "/upload")]:
            fields = [("Host", "interop.test"), ("Content-Type", kind), ("TE", "trailers"),
                      ("Content-Length", 9)]
            with stand.connect() as client:
                client.send(head(method, f"{path}?t={token}", fields) + b"to=mallor")
                client.answer(method)


def shown(lines, genuine=False):
    """A token in a cookie; an application must read the one that was verified."""
    def run(stand, token):
        target, good = f"/told?t={token}", issuer.token()
        stand.promise(token, "POST", target, b"", [(field("session"), good)])
        answer = stand.ask("POST", target, cookies(good, lines))
        return expect_success(answer) if genuine else None

    return run


def override(name):
    def run(stand, token):
        stand.ask("GET", f"/open?t={token}", [(name, "host=forged")])
        for record in stand.records_of(token):
            for read, value in record.get("fields", {}).items():
                if "forged" in str(value):
                    return f"the application read {read}: {value}"
        return None

    return run


def nominated(options):
    def run(stand, token):
        target = f"/profile?t={token}"
        stand.promise(token, "GET", target)
        fields = [("Connection", options), *stand.signed("GET", target)]
        stand.ask("GET", target, fields)
        ran = [record for record in stand.records_of(token)
               if record["stage"] == "executed"]
        if any(record["fields"].get("app-attest-verdict") != "pass" for record in ran):
            return "the application saw no verdict"
        return None

    return run


def differing(change, chunked=False, digest=False, fields=(), signed=None):
    """Content that `change` makes of what was signed."""
    def run(stand, token):
        target, content = f"/upload?t={token}", order(token) if signed is None else signed
        stand.promise(token, "POST", target, content)
        stand.promises[token].broken = True
        proof = stand.proof("POST", target, content)
        body = change(content)
        framing = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", len(body))
        sent = [("Host", "interop.test"), FORM, *(proof if digest else proof[:-1]), *fields, framing]
        if chunked:
            body = chunk(body) + b"0\r\n\r\n" if body else b"0\r\n\r\n"
        with stand.connect() as client:
            client.send(head("POST", target, sent) + body)
            answer = client.answer("POST")
        return f"it was answered {answer.status}" if answer and answer.status < 300 else None

    return run


def whole(size, chunked=False):
    """Content as it was signed, of this size at least."""
    def run(stand, token):
        target, content = f"/upload?t={token}", order(token) + b"&x=" + b"y" * size
        stand.promise(token, "POST", target, content)
        sent = [("Host", "interop.test"), FORM, *stand.proof("POST", target, content)]
        with stand.connect() as client:
            if chunked:
                sent.append(("Transfer-Encoding", "chunked"))
                client.send(head("POST", target, sent) + chunk(content[:9]))
                time.sleep(LATE)
                client.send(chunk(content[9:]) + b"0\r\n\r\n")
            else:
                client.send(head("POST", target, [*sent, ("Content-Length", len(content))]) + content)
            return expect_success(client.answer("POST"))

    return run


def twice(stand, token):
    """The same signed request again, and behind it one whose content was changed."""
    other = stand.token()
    stand.kin[token] = [other]
    parts = []
    for name, content in [(token, order(token)), (other, order(other).replace(b"alice", b"mallory"))]:
        target = f"/upload?t={name}"
        stand.promise(name, "POST", target, order(name))
        sent = [("Host", "interop.test"), FORM, ("Content-Length", len(content)),
                *stand.proof("POST", target, order(name))]
        parts.append(head("POST", target, sent) + content)
    stand.promises[other].broken = True
    with stand.connect() as client:
        client.send(parts[0] + parts[0] + parts[1])
        first = expect_success(client.answer("POST"))
        for _ in range(2):
            client.answer("POST")
        return first


def content_rows():
    for chunked in [False, True]:
        framing = "chunked" if chunked else "length"
        yield f"content as signed, {framing}", post("/upload", chunked=chunked)
        yield f"40 KiB as signed, {framing}", whole(40 << 10, chunked)
        for name, change in [
            ("another byte", lambda signed: signed[:3] + b"m" + signed[4:]),
            ("a byte less", lambda signed: signed[:-1]),
            ("doubled", lambda signed: signed * 2),
            ("nothing", lambda signed: b""),
            ("100 KiB behind it", lambda signed: signed + b"&x=" + b"y" * (100 << 10)),
        ]:
            yield f"content: {name}, {framing}", differing(change, chunked)
        large = b"to=alice&x=" + b"y" * (2 << 20)
        yield f"2 MiB as signed, {framing}", differing(bytes, chunked, signed=large)
        yield f"content where none was signed, {framing}", differing(
            lambda _: b"to=mallory", chunked, signed=b"")
        for ending in ["closed", "reset"]:
            for evil in [True, False]:
                what = "changed" if evil else "cut short"
                yield f"content {what}, {framing}, {ending}", variant(
                    "/upload", evil, chunked, ending)
    yield "content as signed, Expect", post("/upload", expect=True)
    yield "content with a digest: another byte", differing(
        lambda signed: signed[:3] + b"m" + signed[4:], digest=True)
    yield "the same again, and another", twice
    for claim in [("X-Envoy-Auth-Partial-Body", "false"), ("X-Original-Content-Length", "0"),
                  ("X-Forwarded-Content-Length", "0")]:
        yield f"content where none was signed, {claim[0]}", differing(
            lambda _: b"to=mallory", True, fields=[claim], signed=b"")


def rows(has_content):
    yield "genuine", genuine
    if has_content:
        yield from content_rows()
    both = [("Connection", "Upgrade, HTTP2-Settings"), ("HTTP2-Settings", SETTINGS)]
    for value in ["h2c", "H2C", "h2c, websocket", "websocket, h2c"]:
        yield f"Upgrade: {value}", tunnel(value, both)
    yield "Upgrade: h2c, not named", tunnel("h2c", both[1:])
    yield "Upgrade in two lines", tunnel("websocket", [("Upgrade", "h2c"), *both])
    yield "preface", preface
    yield "preface behind a request", preface_behind
    asked = [("Origin", "https://a.example"), ("Access-Control-Request-Method", "POST")]
    for mark in MARKS:
        yield f"twins with {mark}", twins(mark, "GET", "/open")
        yield f"twins with {mark}, signed", twins(mark, "POST", "/pay")
        yield f"twins with {mark}, preflight", twins(mark, "OPTIONS", "/v1/orders", asked)
    for options in ["App-Attest-Verdict", "close, app-attest-verdict, App-Attest-Reason"]:
        yield f"Connection: {options}", nominated(options)
    yield "a call of gRPC", called
    for lines in [["a\xffb"], ["a!b", "c"]]:
        yield f"a!b is signed, {lines!r} comes", rewritten("a!b", *lines)
    yield "a,b is signed, two lines come", rewritten("a,b", "a", "b")
    for name in OVERRIDES:
        yield name, override(name)
    for lines in PLAIN:
        yield f"Cookie: {lines!r}", shown(lines, genuine=True)
    for lines in LINES:
        yield f"Cookie: {lines!r}", shown(lines)
    for method, path in [*METHODS, *PATHS]:
        yield f"{method} {path!r}", unsigned(method, path)
    for path in SCRIPTS:
        yield f"POST {path!r}", script(path)


def examine(proxy, backend, program, folder, devices):
    """Prints what is WRONG, and answers how many attacks held and how many did not."""
    stand = Front(proxy, backend, program, folder, devices)
    try:
        found = []
        for name, run in rows(proxy in WITH_CONTENT):
            token = stand.token()
            try:
                fault = run(stand, token)
            except NotApplicable:
                continue
            except (OSError, RuntimeError) as error:
                fault = f"the attack itself failed: {error}"
            found.append((name, token, [fault] if fault else []))
        stand.settle()
        records = stand.records()
        for name, token, faults in found:
            lines = records.get(token, [])
            # A preflight is admitted where the rule says so; it runs no other method.
            if name.endswith("preflight"):
                lines = [line for line in lines if line["method"] != "OPTIONS"]
            faults += judge.faults(lines, stand.promises.get(token))
            for other in stand.kin.get(token, []):
                faults += judge.faults(records.get(other, []), stand.promises.get(other))
            for fault in faults[-1:]:
                print(f"WRONG: {proxy}: {backend.name}: {name}: {fault}")
        wrong = sum(bool(faults) for _, _, faults in found)
        print(f"decisions: {proxy}, {backend.name}: {len(found) - wrong} held, {wrong} WRONG")
        return wrong
    finally:
        stand.stop()


def main():
    program = os.path.abspath(sys.argv[1])
    backends = [backend for backend in [*BACKENDS, HTTP2Apache()]
                if backend.name in [*APPLICATIONS, HTTP2Apache().name] and backend.version()]
    there = []
    for proxy in PROXIES:
        if program_of(proxy):
            there.append(proxy)
        else:
            print(f"\n!!! interoperability: NOT CHECKED, since it is not installed: {proxy}\n")
    if not there or not backends:
        return 2
    folder = tempfile.mkdtemp(prefix="pg-")
    os.chmod(folder, 0o755)
    end_when_told(folder)
    for proxy in there:
        os.mkdir(os.path.join(folder, proxy))
        os.chmod(os.path.join(folder, proxy), 0o755)

    # One for each genuine request of a pair. Each gateway has a copy of the store that the first one fills.
    devices = [Device() for _ in range(100)]

    def holds(pair):
        proxy, backend = pair
        try:
            return examine(proxy, backend, program, os.path.join(folder, proxy), devices) == 0
        except Exception as error:
            print(f"WRONG: {proxy}: {backend.name}: does not run: {error}")
            return False

    try:
        with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            held = list(pool.map(holds, [(proxy, backend) for proxy in there
                                         for backend in backends]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
