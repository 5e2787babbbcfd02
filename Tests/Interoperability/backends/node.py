"""Node: Express as Debian has it, and Node's own http."""
import os
import subprocess

from backends.backend import APPS, Backend, find, version_of

# Where Debian installs modules, beside whatever the caller has.
MODULES = "/usr/share/nodejs"


class Express(Backend):
    name = "Express"
    adds_fields = True

    def version(self):
        if not find("node"):
            return None
        done = subprocess.run(
            ["node", "-p", "require('express/package.json').version"],
            env=os.environ | self.environment(), capture_output=True, text=True, check=False,
        )
        return done.stdout.strip() if done.returncode == 0 else None

    def commands(self, port, folder):
        yield [find("node"), os.path.join(APPS, "express.js"), str(port)]

    def environment(self):
        paths = [os.environ.get("NODE_PATH"), MODULES]
        return {"NODE_PATH": ":".join(path for path in paths if path)}


class PlainNode(Backend):
    name = "Node, new URL"
    reads_cookies = False
    has_connection_users = True
    drops_connections = True

    def version(self):
        return find("node") and version_of("node", "--version")

    def commands(self, port, folder):
        yield [find("node"), os.path.join(APPS, "plain.js"), str(port)]
