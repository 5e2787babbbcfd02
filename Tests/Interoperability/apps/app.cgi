#!/usr/bin/env -S python3 -I -S
"""A CGI program: its route is PATH_INFO, its fields are variables."""
import json
import os
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import record
from routes import READS_CONTENT, ROUTES

method, path = os.environ["REQUEST_METHOD"], os.environ.get("PATH_INFO") or "/"
if os.environ["SCRIPT_NAME"].endswith("/api/pay.php"):
    handler, path = ("script" if method == "POST" else "none"), os.environ["SCRIPT_NAME"]
else:
    handler = "none"
    for route, name, methods in ROUTES:
        allowed = methods and methods + (["HEAD"] if "GET" in methods else [])
        if route == path and (not allowed or method in allowed):
            handler = name
    if path.startswith("/files/"):
        handler = record.file_handler(path[len("/files/"):])
query = urllib.parse.parse_qs(os.environ.get("QUERY_STRING", ""))
record.entered(handler, method, path, query)
content = b""
if method in READS_CONTENT:
    content = sys.stdin.buffer.read(int(os.environ.get("CONTENT_LENGTH") or 0))
form = urllib.parse.parse_qs(content.decode("latin-1"))
fields = record.cgi_fields(os.environ)
if "cookie" in fields:
    fields |= record.cookie_fields(record.simple_cookies(fields["cookie"]))
record.executed(handler, method, path, query, form, fields, content)
status = "404 Not Found" if handler == "none" else "200 OK"
print(f"Status: {status}\r\nContent-Type: application/json\r\n\r\n", end="")
print(json.dumps({"handler": handler, "query": query}))
