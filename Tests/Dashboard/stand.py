"""A gateway before an origin, with traffic: devices that sign, some of them wrongly, and strangers
whose paths are written to become markup."""

import http.client
import json
import pathlib
import re
import secrets
import socket
import subprocess
import tempfile
import threading
import time

MARKUP = "<img/src=x/onerror=window.hacked=1>"
PATIENCE = 30


class Origin:
    """Answers everything, a few requests slowly."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.socket.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        rest = b""
        with client:
            while True:
                while b"\r\n\r\n" not in rest:
                    try:
                        read = client.recv(65536)
                    except OSError:
                        return
                    if not read:
                        return
                    rest += read
                head, _, rest = rest.partition(b"\r\n\r\n")
                length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
                left = int(length[1]) if length else 0
                while len(rest) < left:
                    rest += client.recv(65536)
                rest = rest[left:]
                if secrets.randbelow(20) == 0:
                    time.sleep(0.03)
                try:
                    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
                except OSError:
                    return


class Gateway:
    """admin: `unix`, `token` or `open`: how the admin listener is configured."""

    def __init__(self, program, admin="token"):
        self.program = pathlib.Path(program).resolve()
        self.load = self.program.with_name("portcullis-load")
        self.folder = tempfile.TemporaryDirectory(prefix="portcullis-dashboard-")
        self.home = pathlib.Path(self.folder.name)
        self.origin = Origin()
        self.token = secrets.token_hex(32)
        self.admin = admin
        token = self.home / "token"
        token.touch(mode=0o600)
        token.write_text(self.token + "\n")
        self.configure()
        self.prepare()
        self.process = None
        self.loads = []
        self.start()

    def configure(self):
        address = {"token": "127.0.0.1:0, token_file: token", "open": "127.0.0.1:0",
                   "unix": f'"unix:{self.home}/admin.sock"'}[self.admin]
        rule = "{{ id: {0}, match: {{ path: /v1/{0} }}, mode: {1}, apps: [TEAM123456.com.example.load]{2} }}"
        rules = [rule.format("place-order", "enforce", ""),
                 rule.format("pay", "enforce", ", rollout: { percent: 25% }"),
                 rule.format("profile", "observe", ""),
                 '{ id: "assets", match: { path: /assets/** }, mode: off }',
                 '{ id: "watched", match: { path: /watched/** }, mode: observe, apps: [TEAM123456.com.example.load] }']
        (self.home / "portcullis.yaml").write_text(f"""
listen: [{{ address: "127.0.0.1:0" }}]
admin: {{ address: {address} }}
event_loops: 2
origins: {{ shop: {{ servers: ["127.0.0.1:{self.origin.port}"] }}, media: {{ servers: ["127.0.0.1:{self.origin.port}", "127.0.0.1:1"] }} }}
apps: [{{ id: TEAM123456.com.example.load, environments: [test], test_root: root.pem }}]
store: {{ sqlite: portcullis.db }}
log: {{ access: off }}
limits: {{ address_failures: off }}
default: {{ origin: shop, mode: deny }}
rules:
""" + "".join(f"  - {rule[:-1]}, origin: {'media' if 'assets' in rule else 'shop'} }}\n" for rule in rules))

    def run(self, program, *words):
        subprocess.run([program, *words], cwd=self.home, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=120)

    def prepare(self):
        # A fleet for each rule: two loads can't use one counter.
        for name in ["place-order", "pay", "profile"]:
            self.run(self.load, "prepare", name, "--app-id", "TEAM123456.com.example.load", "--devices",
                     "60", "--keys", name + ".jsonl", "--root", "root.pem")
            self.run(self.program, "keys", "import", "--config", "portcullis.yaml", name + ".jsonl")

    def start(self):
        log = open(self.home / "gateway.log", "wb")
        self.process = subprocess.Popen([self.program, "serve", "portcullis.yaml"], cwd=self.home,
                                        stdout=log, stderr=log)
        end = time.monotonic() + PATIENCE
        while True:
            text = (self.home / "gateway.log").read_text()
            if " event loops, " in text:
                break
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit(f"the gateway does not start:\n{text}")
            time.sleep(0.05)
        self.port = int(re.search(r"listening on 127\.0\.0\.1:(\d+)", text)[1])
        found = re.search(r"admin on 127\.0\.0\.1:(\d+)", text)
        self.admin_port = int(found[1]) if found else Forward(self.home / "admin.sock").port

    def signed(self, rule, seconds, rate, mix):
        """Sends signed requests to a rule, and some that are not as they should be."""
        url = f"http://127.0.0.1:{self.port}/v1/{rule}"
        words = ["run", "--config", "portcullis.yaml", "--rate", str(rate), "--duration", f"{seconds}s",
                 "--warm-up", "0s", "--connections", "8", "-X", "POST", "--content", "100..400", "--mix", mix]
        load = subprocess.Popen([self.load, *words, rule, url], cwd=self.home,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.loads.append(load)
        return load

    def hostile(self):
        """Requests of strangers. Those that are no HTTP are refused before any rule."""
        for path in [f"/watched/{MARKUP}", "/watched/%3Cscript%3Ewindow.hacked=1%3C/script%3E",
                     "/watched/'-alert(1)-'", "/watched/javascript:alert(1)"]:
            with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as client:
                client.sendall(f"GET {path} HTTP/1.1\r\nHost: shop.example.com\r\nUser-Agent: {MARKUP}\r\n"
                               f"X-Request-Id: {MARKUP}\r\nConnection: close\r\n\r\n".encode())
                client.recv(4096)

    def ask(self, method, page, fields=None, content=None):
        client = http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=PATIENCE)
        client.request(method, page, content, fields or {})
        response = client.getresponse()
        return response, response.read()

    def status(self):
        return json.loads(self.ask("GET", "/status")[1])

    def end(self):
        for load in self.loads:
            load.kill()
            load.wait()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()


class Forward:
    """What `ssh -L` does: a loopback port that leads to a Unix socket."""

    def __init__(self, path):
        self.path = str(path)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.socket.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.path)
            for one, other in [(client, server), (server, client)]:
                threading.Thread(target=self.copy, args=(one, other), daemon=True).start()

    @staticmethod
    def copy(one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass
