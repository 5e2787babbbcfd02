"""What an application executed: one line of JSON for each step, in the file INTEROP_LOG.

`entered` is written when the application's own code for a route begins, before it touches content;
`executed` when it has what it acts on. Both are what the application sees, not what its server got.
"""
import json
import os

# The interpreter's own (2 since Python 3.12): hashlib loads OpenSSL, for each request of a CGI program.
try:
    from _sha2 import sha256
except ImportError:
    try:
        from _sha256 import sha256
    except ImportError:
        from hashlib import sha256

_log = None


def write(line):
    global _log
    if _log is None:
        _log = os.open(os.environ["INTEROP_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    # One write, so that lines of several threads and processes stay whole.
    os.write(_log, json.dumps(line).encode() + b"\n")


def entered(handler, method, path, query):
    write({"stage": "entered", "handler": handler, "method": method, "path": path, "query": query})


def executed(handler, method, path, query, form, fields, content):
    write({
        "stage": "executed", "handler": handler, "method": method, "path": path, "query": query,
        "form": form, "fields": fields, "length": len(content),
        "sha256": sha256(content).hexdigest(), "content": content[:512].decode("latin-1"),
    })


# Those that a proof may be in; see attacks/cookies.py.
COOKIES = ["session", "app_session"]


def cookie_fields(cookies):
    """Which cookies an application reads, beside its fields."""
    return {f"cookie:{name}": str(cookies[name]) for name in COOKIES if name in cookies}


def simple_cookies(text):
    """The cookies that Python's own parser finds; none where it gives up."""
    from http.cookies import CookieError, SimpleCookie
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(text or "").items()}
    except CookieError:
        return {}


def cgi_fields(environ):
    """The fields as an application reads them out of CGI variables."""
    fields = {
        name[5:].replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    if environ.get("CONTENT_TYPE"):
        fields["content-type"] = environ["CONTENT_TYPE"]
    return fields


def file_handler(rest):
    """Which handler serves a file: its name is what the framework made of the path."""
    while "//" in rest:
        rest = rest.replace("//", "/")
    return "private" if rest.lstrip("/").startswith("private/") else "files"
