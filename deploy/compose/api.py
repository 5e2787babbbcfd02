"""A legacy API: it takes orders, and prints what the gateway says of each.

usage: api.py [ADDRESS PORT]
"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class API(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        verdict = [self.headers.get("App-Attest-" + name, "-") for name in ("Verdict", "Reason")]
        print(self.command, self.path, *verdict, flush=True)
        body = b"ordered\n" if self.command == "POST" else b"no orders\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        # What a rule verifies is for nobody else's cache.
        self.send_header("Cache-Control", "private")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = answer

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    address, port = sys.argv[1:] or ("0.0.0.0", 8000)
    ThreadingHTTPServer((address, int(port)), API).serve_forever()
