"""Servers written for Python, in the interpreter that runs the harness."""
import importlib.metadata
import os
import sys

from backends.backend import APPS, Backend


class PythonServer(Backend):
    adds_fields = True

    def __init__(self, name, package, arguments, http2=False):
        self.name = name
        self.package = package
        self.arguments = arguments
        self.http2 = http2

    def version(self):
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return None

    def commands(self, port, folder):
        yield [sys.executable, *(word.replace("{port}", str(port)) for word in self.arguments)]

    def environment(self):
        return {"PYTHONPATH": APPS}


class Script(PythonServer):
    """What comes with Python."""

    def __init__(self, name, kind):
        self.drops_connections = kind == "http.server"
        self.adds_fields = not self.drops_connections
        super().__init__(name, None, [os.path.join(APPS, "serve.py"), kind, "{port}"])

    def version(self):
        return "Python " + sys.version.split()[0]
