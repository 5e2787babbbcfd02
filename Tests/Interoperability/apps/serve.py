#!/usr/bin/env python3
"""Starts what has no command of its own. usage: serve.py wsgiref|http.server PORT"""
import json
import sys
import urllib.parse

import record
from routes import READS_CONTENT, ROUTES


def wsgiref(port):
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    from django_app import application

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_):
            pass

    make_server("127.0.0.1", port, application, handler_class=Quiet).serve_forever()


def http_server(port):
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Application(BaseHTTPRequestHandler):
        """As the documentation's examples: GET reads no content, POST reads Content-Length."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handler(self, path):
            for route, name, methods in ROUTES:
                if route == path and (not methods or self.command in methods):
                    return name
            if path.startswith("/files/"):
                return record.file_handler(urllib.parse.unquote(path[len("/files/"):]))
            return "none"

        def execute(self):
            target = urllib.parse.urlsplit(self.path)
            handler = self.handler(target.path)
            query = urllib.parse.parse_qs(target.query)
            record.entered(handler, self.command, target.path, query)
            content = b""
            # What is not there is answered at once, as in many such servers.
            if self.command in READS_CONTENT and handler != "none":
                content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            form = urllib.parse.parse_qs(content.decode("latin-1"))
            fields = {name.lower(): self.headers[name] for name in self.headers}
            cookies = record.simple_cookies(self.headers["Cookie"])
            fields |= record.cookie_fields(cookies)
            record.executed(handler, self.command, target.path, query, form, fields, content)
            if "drop" in target.query:
                self.close_connection = True
                return
            answer = json.dumps({"handler": handler, "query": query}).encode()
            self.send_response(404 if handler == "none" else 200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = do_DELETE = do_OPTIONS = execute

        def log_message(self, *_):
            pass

    ThreadingHTTPServer.request_queue_size = 128
    ThreadingHTTPServer(("127.0.0.1", port), Application).serve_forever()


if __name__ == "__main__":
    {"wsgiref": wsgiref, "http.server": http_server}[sys.argv[1]](int(sys.argv[2]))
