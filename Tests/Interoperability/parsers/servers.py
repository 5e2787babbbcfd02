"""The servers, each with an application that echoes what was parsed."""
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys

from processes import free_port

HERE = os.path.dirname(os.path.abspath(__file__))


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
            f"Listen 127.0.0.1:{port}\nServerName interop.test\nHttpProtocolOptions Unsafe\n"
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
