"""Starts the gateways that are compared, and the origins behind them, on free ports of loopback."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import edge
from failure import Failure

APP = "TEAM123456.com.example.bench"
HERE = os.path.dirname(os.path.abspath(__file__))

NGINX = """worker_processes 1; master_process off; daemon off;
pid {folder}/{name}.pid; error_log {folder}/{name}.log;
events {{ worker_connections 9000; }}
http {{
  access_log off; sendfile on; keepalive_requests 1000000000; keepalive_timeout 600s; client_max_body_size 0;
  client_body_temp_path {folder}/{name}-1; proxy_temp_path {folder}/{name}-2;
  fastcgi_temp_path {folder}/{name}-3; uwsgi_temp_path {folder}/{name}-4;
  scgi_temp_path {folder}/{name}-5;
  {body}
}}
"""

NGINX_ORIGIN = """server {{
    listen 127.0.0.1:{port} backlog=4096; client_header_buffer_size 4k;
    location / {{ default_type text/plain; return 200 "{content}"; }}
    location = /large {{ root {folder}; }}
  }}"""

NGINX_PROXY = """upstream small {{
    server 127.0.0.1:{origin}; keepalive 256; keepalive_requests 1000000000;
  }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    proxy_http_version 1.1; proxy_set_header Connection "";
    location / {{ proxy_pass http://small; }}
    location /upload {{ proxy_pass http://127.0.0.1:{sink}; proxy_request_buffering off; }}
  {tls}}}"""

NGINX_TLS = """  listen 127.0.0.1:{port} ssl http2 backlog=4096; http2_max_requests 1000000000;
    ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;
  """

HAPROXY = """global
  nbthread 1
  maxconn 9000
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 60s
  http-reuse always
frontend front
  bind 127.0.0.1:{port}
  default_backend small
backend small
  server one 127.0.0.1:{origin}
"""


class Stand:
    """A folder and the processes that were started in it. Leaving it ends those, and no others."""

    def __init__(self, folder, program, nginx):
        self.folder, self.program, self.nginx = folder, program, nginx
        self.running = []
        self.origin_port = self.sink_port = 0
        self.secure_port = None

    def __enter__(self):
        try:
            self._start_origins()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_):
        self._end()

    def _start_origins(self):
        self.origin_port, self.sink_port = free_port(), free_port()
        body = NGINX_ORIGIN.format(port=self.origin_port, content="x" * 64, folder=self.folder)
        self.launch("origin", self.nginx_command("origin", body), self.origin_port)
        sink = [sys.executable, "-B", os.path.join(HERE, "sink.py"), str(self.sink_port)]
        self.launch("sink", sink, self.sink_port)

    def _end(self):
        for process in self.running:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def end(self, gateway):
        """Ends one gateway."""
        for process in self.running:
            if process.pid == gateway[0]:
                process.send_signal(signal.SIGTERM)
                process.wait(30)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def launch(self, name, command, port):
        with open(self.path(name + ".out"), "w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        self.running.append(process)
        deadline = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return process
            time.sleep(0.02)
        with open(self.path(name + ".out")) as log:
            raise Failure(f"{name} does not listen: {log.read()[-500:]}", f"run it: {command}")

    def nginx_command(self, name, body):
        text = NGINX.format(folder=self.folder, name=name, body=body)
        return [self.nginx, "-c", self.write(name + ".conf", text)]

    def add_large_file(self, size):
        """A file of the origin, at /large."""
        os.chmod(self.folder, 0o755)
        with open(self.path("large"), "w") as file:
            file.truncate(size)

    def start_secure(self, system):
        """As start(), with TLS and HTTP/2 on a second port; gives process id and both ports."""
        self.secure_port = free_port()
        try:
            pid, port = self.start(system)
            return pid, (port, self.secure_port)
        finally:
            self.secure_port = None

    def start_on(self, address, name, keys=None, **settings):
        """Starts a Portcullis that keeps its keys in a PostgreSQL; gives process id and port."""
        return self.start_with(name, {"postgresql": {"address": address, **settings}}, keys)

    def start_with(self, name, store, keys=None, settings=None):
        """Starts a Portcullis with this store and further settings; gives process id and port."""
        port = free_port()
        command = self._portcullis(port, keys, store, name, settings)
        return self.launch(name, command, port).pid, port

    def start(self, system, keys=None):
        """Starts one gateway on one core; gives process id and port."""
        port = free_port()
        command = {
            "portcullis": self._portcullis,
            "nginx": self._nginx_proxy,
            "haproxy": self._haproxy,
        }[system](port, keys)
        return self.launch(system, command, port).pid, port

    def _nginx_proxy(self, port, _):
        tls = ""
        if self.secure_port:
            certificate, key = edge.certificate(self.folder)
            tls = NGINX_TLS.format(port=self.secure_port, certificate=certificate, key=key)
        body = NGINX_PROXY.format(
            port=port, origin=self.origin_port, sink=self.sink_port, tls=tls
        )
        return self.nginx_command("nginx", body)

    def _haproxy(self, port, _):
        text = HAPROXY.format(port=port, origin=self.origin_port)
        return ["haproxy", "-db", "-f", self.write("haproxy.cfg", text)]

    def _portcullis(self, port, keys, store=None, name="portcullis", settings=None):
        signed = {"mode": "enforce", "challenge": "none", "counter": "strict"}
        rules = [
            {"id": "verified", "match": {"path": "/verified"}, "origin": "small",
             "sign": ["method", "target"], **signed},
            {"id": "session", "match": {"path": "/session"}, "origin": "small", "mode": "enforce",
             "accept": ["assertion", "session"]},
            {"id": "upload", "match": {"path": "/upload"}, "origin": "sink",
             "sign": ["method", "target", "body"],
             "body": {"digest": "streamed", "limit": "64GiB"}, **signed},
        ]
        if store is None:
            store = {"sqlite": self.path("portcullis.db")}
            for suffix in ("", "-wal", "-shm", ".generation"):
                if os.path.exists(self.path("portcullis.db" + suffix)):
                    os.remove(self.path("portcullis.db" + suffix))
        listen = [{"address": f"127.0.0.1:{port}", "http2": "on"}]
        if self.secure_port:
            certificate, key = edge.certificate(self.folder)
            listen.append({
                "address": f"127.0.0.1:{self.secure_port}", "http2": "on",
                "tls": {"certificate": certificate, "key": key},
            })
        # JSON is YAML.
        file = self.write(name + ".yaml", json.dumps({
            "listen": listen,
            "event_loops": 1,
            "origins": {
                "small": {"servers": [f"127.0.0.1:{self.origin_port}"]},
                "sink": {"servers": [f"127.0.0.1:{self.sink_port}"]},
            },
            "apps": [{"id": APP, "environments": ["production"]}],
            "store": store,
            "log": {"access": "off"},
            "default": {"origin": "small", "mode": "off"},
            "rules": rules,
            **(settings or {}),
        }))
        if keys:
            if "postgresql" in store:
                self.run("store", "migrate", file)
            self.run("keys", "import", "--config", file, keys)
        return [self.program, "serve", file]

    def run(self, *arguments):
        """Runs a command of the gateway's to its end."""
        command = [self.program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"{' '.join(arguments[:2])}: {done.stderr}", " ".join(command))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def find(name):
    """Where a program is; /usr/sbin is outside the path of users who are not root."""
    path = os.environ.get("PATH", "") + os.pathsep + "/usr/sbin"
    return shutil.which(name, path=path)
