"""A server with an application in it, as the harness sees all of them."""
import functools
import os
import re
import shutil
import subprocess

APPS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "apps")


def find(name):
    """A program's path; servers lie outside the path of users who are not root."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


@functools.cache
def version_of(*command):
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        check=False,
    )
    found = re.search(r"\d+(\.\d+)+", done.stdout.decode("latin-1"))
    return found.group() if found else "?"


class Backend:
    """What a backend has to say; `name` is unique.

    `has_scripts`: that `/api/pay.php` is a script of its own, which takes a PATH_INFO.
    `has_connection_users`: that `/who` knows a connection's user, as with NTLM.
    `adds_fields`: that a request makes it add fields to its response, see apps/routes.py.
    `http2`: that the gateway speaks HTTP/2 to it.
    `reads_cookies`: that its application writes down which cookies it has read.
    `drops_connections`: that a request with `drop` in its query is executed and not answered.
    """

    name = ""
    has_scripts = False
    has_connection_users = False
    adds_fields = False
    reads_cookies = True
    drops_connections = False
    http2 = False

    def version(self):
        """The server's version, or None where it is not installed."""
        raise NotImplementedError

    def commands(self, port, folder):
        """The commands that start it, the one that listens on the port last."""
        raise NotImplementedError

    def environment(self):
        return {}
