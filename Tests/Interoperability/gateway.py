"""The gateway in front of one backend: its configuration, its keys, its processes."""
import json
import os
import shutil
import socket
import subprocess
import threading

import issuer
from client import Client
from device import APP, TEST_APP, Device, test_root
from processes import Processes, free_port

HOST = "api.interop.test"

RULES = """\
- id: pay
  match: { method: [POST], path: /pay }
  mode: enforce
  headers: [idempotency-key]
  body: { digest: held, limit: 1MiB }
- id: upload
  match: { method: [POST], path: /upload }
  mode: enforce
  body: { digest: streamed, limit: 1MiB }
- { id: profile, match: { method: [GET], path: /profile }, mode: enforce }
- { id: item, match: { method: [DELETE], path: /item }, mode: enforce }
- { id: orders, match: { path: /v1/orders }, mode: enforce }
- { id: place, match: { path: /place_order }, mode: enforce }
- { id: script, match: { path: /api/pay.php }, mode: enforce }
- { id: folder, match: { path: /api/ }, mode: enforce }
- { id: root, match: { method: [OPTIONS], path: / }, mode: enforce }
- id: private
  match: { path: /files/private/** }
  mode: enforce
  allow_encoded: [slash]
- { id: files, match: { path: /files/** }, mode: observe, allow_encoded: [slash] }
- id: checkin
  match: { method: [POST], path: /checkin }
  mode: enforce
  sign: content
  challenge: none
- id: told
  match: { method: [POST], path: /told }
  mode: enforce
  sign: challenge
- { id: off, match: { path: /off/** }, mode: off }
- id: hosted
  match: { host: api.interop.test, path: /hosted }
  mode: enforce
  preflight: forward
"""
# With it no spelling of /hosted is open, whatever the Host; see attacks/spelling.py.
CLOSED = "- { id: elsewhere, match: { path: /hosted }, mode: deny }\n"
# What Apple knows of devices. Each rule has a host of its own, so that every application needs one
# route for all of them.
TRIAL = "match: { host: %s.interop.test, method: [POST], path: /trial }"
DEVICES = f"""\
- id: trial
  {TRIAL % "trial"}
  mode: enforce
  device: {{ refuse_if: {{ bit0: true }}, timeout: 15s }}
- id: kind
  {TRIAL % "kind"}
  mode: enforce
  device: {{ refuse_if: {{ bit0: true }}, on_error: forward, timeout: 15s }}
- id: watched
  {TRIAL % "watched"}
  mode: observe
  device: {{ refuse_if: {{ bit0: true }}, timeout: 15s }}
"""
# A token in a cookie in the place of a signature.
PAGES = f"""\
- {{ id: page, {TRIAL % "page"}, mode: enforce, accept: [page] }}
- {{ id: pages, {TRIAL % "pages"}, mode: enforce, accept: [pages] }}
"""
# A challenge in the content, which only a good signature has the gateway read.
POINTED = f"""\
- id: pointed
  {TRIAL % "pointed"}
  mode: enforce
  sign: content
  challenge: {{ json_pointer: /auth/challenge }}
"""
RISK = f"""\
- id: risky
  {TRIAL % "risky"}
  mode: enforce
  risk: {{ max: 8 }}
- id: strict
  {TRIAL % "strict"}
  mode: enforce
  risk: {{ max: 8, action: refuse }}
- id: ramped
  {TRIAL % "ramped"}
  mode: enforce
  risk: {{ max: 8, action: refuse, rollout: {{ percent: 50% }} }}
- {{ id: trials, match: {{ path: /trial }}, mode: deny }}
"""
# What the rules above keep from being executed without a proof.
PROTECTED = {"pay", "upload", "profile", "item", "orders", "script", "private", "checkin", "told",
             "hosted", "trial", "place", "folder"}
# How many keys have a risk metric above the limit of the rules, and which.
RISKY_COUNT, RISKY_METRIC = 16, 20


class Gateway:
    """One gateway process and what it reads."""

    # Lists of devices, each with a database that has their keys; and who adds one.
    filled = []
    filling = threading.Lock()

    def __init__(self, program, folder, origin, devices, limits="{}",
                 address="x-forwarded-for", apple="", http2=False):
        """`apple`: the section, where there is one; `http2`: how the origin is spoken to."""
        self.http2 = http2
        self.program = program
        self.folder = folder
        self.port = free_port()
        self.socket = os.path.join(folder, "gateway")
        self.log = os.path.join(folder, "access.log")
        self.path = os.path.join(folder, "portcullis.yaml")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(self.configuration(origin, limits, address, apple))
        with open(os.path.join(folder, "test-root.pem"), "wb") as file:
            file.write(test_root())
        if devices:
            self.take_keys(devices)
        self.processes = Processes(os.path.join(folder, "gateway.output"))
        self.processes.start([program, "serve", self.path])

    def take_keys(self, devices):
        """Imports the devices' keys. Twelve gateways have the same thousand: only the first one
        imports them, and the others get a copy of its database."""
        database = os.path.join(self.folder, "portcullis.db")
        with Gateway.filling:
            for others, filled in Gateway.filled:
                if others is devices:
                    copy_store(filled, database)
                    return
            keys = os.path.join(self.folder, "keys")
            with open(keys, "w", encoding="utf-8") as file:
                file.writelines(device.import_line() for device in devices)
            self.command("keys", "import", "--config", self.path, keys)
            # Once a gateway runs on it, a copy would lack what is in its log.
            if not os.path.exists(database + "-wal"):
                filled = os.path.join(self.folder, "imported.db")
                copy_store(database, filled)
                Gateway.filled.append((devices, filled))

    def configuration(self, origin, limits, address, apple):
        rules = RULES + CLOSED + (DEVICES if apple else "") + PAGES + POINTED + RISK
        if self.http2:
            # A server of HTTP/2 may execute content whose end is kept back.
            rules = rules.replace("digest: streamed", "digest: held")
        keys = os.path.join(self.folder, "keys.json")
        with open(keys, "w", encoding="utf-8") as file:
            file.write(issuer.key_set())
        rules = "".join("  " + line + "\n" for line in rules.splitlines())
        return (
            f"listen:\n  - address: \"unix:{self.socket}\"\n  - address: 127.0.0.1:{self.port}\n"
            f"origins: {{ interop: {{ servers: [\"127.0.0.1:{origin}\"],"
            f" first_byte_timeout: 20s{', http2: on' if self.http2 else ''} }} }}\n"
            f"apps:\n  - {{ id: {APP}, environments: [production] }}\n"
            f"  - {{ id: {TEST_APP}, environments: [test], test_root: test-root.pem }}\n"
            f"store: {{ sqlite: {self.folder}/portcullis.db }}\n"
            f"log: {{ access: {self.log}, level: error }}\nevent_loops: 1\n"
            f"trusted_proxies: [127.0.0.1/32]\nclient_address: {address}\n"
            f"limits: {limits}\n"
            # What a client keeps back ends soon; as soon as a slow machine lets it.
            "timeouts: { body_idle: 2s, linger: 500ms, pool_idle: 4s }\n"
            f"proofs:\n  page: {issuer.proof('cookie: session', keys)}\n"
            f"  pages: {issuer.proof('cookie: app_session', keys)}\n"
            f"{apple}default: {{ origin: interop, mode: observe }}\nrules:\n{rules}"
        )

    def command(self, *words):
        done = subprocess.run(
            [self.program, *words], capture_output=True, text=True, timeout=60,
            stdin=subprocess.DEVNULL, check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"portcullis {words[0]}: {done.stdout}{done.stderr}")
        return done.stdout

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.socket)
        return Client(connection)

    def connect_tcp(self):
        return Client(socket.create_connection(("127.0.0.1", self.port)))

    def wait(self):
        self.processes.wait(self.connect, "portcullis")

    def challenges(self, count):
        """Fresh challenges for assertions, eight a call."""
        found = []
        with self.connect() as client:
            while len(found) < count:
                content = b'{"purpose":"assertion","count":8}'
                client.send(
                    b"POST /.well-known/app-attest/challenges HTTP/1.1\r\nHost: interop\r\n"
                    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                    % (len(content), content)
                )
                answer = client.answer("POST")
                if not answer or answer.status != 200:
                    raise RuntimeError(f"no challenges: {answer and answer.status}")
                found += json.loads(answer.content)["challenges"]
        return found

    def stop(self):
        self.processes.stop()


def copy_store(database, copy):
    """Copies a store that no process uses: the database, and the file that says how far it has
    come. A gateway takes a database without that file for an older copy, and refuses to start."""
    for suffix in ["", ".generation"]:
        shutil.copy2(database + suffix, copy + suffix)


def devices(count):
    """Keys of the app, some with a risk metric, then one of the app that only its rules should
    admit."""
    risky = [Device(metric=RISKY_METRIC) for _ in range(RISKY_COUNT)]
    return [Device() for _ in range(count)] + risky + [Device(TEST_APP, "test")]
