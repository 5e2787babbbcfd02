#!/usr/bin/env python3
"""Echo applications: each writes what its server parsed to a log, a line of JSON for each request.

usage: backends.py KIND PORT LOG

Imports are late, since each server is in one function and none needs the others.
"""
import hashlib
import json
import os
import sys

log = -1


def record(method, target, fields, body, how):
    """Writes one request; fields are pairs of text in Latin-1, `how` says what they are."""
    line = {
        "method": method,
        "target": target,
        "fields": [list(pair) for pair in fields],
        "length": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
        "how": how,
    }
    text = json.dumps(line).encode() + b"\n"
    # One write, so that lines of several threads stay whole.
    os.write(log, text)
    return text


def text(octets):
    return octets.decode("latin-1")


def application(environ, start_response):
    """WSGI: fields are CGI variables, the target is raw where the server says it."""
    stream = environ["wsgi.input"]
    length = environ.get("CONTENT_LENGTH")
    software = environ.get("SERVER_SOFTWARE", "")
    # The streams of these two are the socket: they end with the connection, not with the content.
    is_socket = software.startswith(("WSGIServer/", "Werkzeug/"))
    if length:
        body = stream.read(int(length))
    elif environ.get("wsgi.input_terminated") or not is_socket:
        body = stream.read()
    else:
        body = b""
    target = environ.get("RAW_URI") or environ.get("REQUEST_URI")
    how = "cgi"
    if target is None:
        how = "cgi, decoded"
        target = environ["PATH_INFO"]
        if environ.get("QUERY_STRING"):
            target += "?" + environ["QUERY_STRING"]
    fields = [(name, value) for name, value in environ.items() if is_field(name, value)]
    answer = record(environ["REQUEST_METHOD"], target, fields, body, how)
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]


def is_field(name, value):
    # A server may show the type of content under both names.
    if name == "HTTP_CONTENT_TYPE":
        return False
    return name.startswith("HTTP_") or name == "CONTENT_TYPE" and bool(value)


def serve_gunicorn(port):
    arguments = ["-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--worker-class", "gthread"]
    arguments += ["--threads", "2", "--keep-alive", "30", "--log-level", "error"]
    os.environ["INTEROP_LOG"] = sys.argv[3]
    here = os.path.dirname(os.path.abspath(__file__))
    arguments += ["--chdir", here, "backends:application"]
    os.execv(sys.executable, [sys.executable] + arguments)


def serve_waitress(port):
    import waitress

    waitress.serve(application, listen=f"127.0.0.1:{port}", threads=2, _quiet=True)


def serve_cheroot(port):
    from cheroot import wsgi

    server = wsgi.Server(("127.0.0.1", port), application)
    server.timeout = 30
    server.start()


def serve_werkzeug(port):
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log(self, *_):
            pass

    server = make_server("127.0.0.1", port, application, threaded=True, request_handler=Quiet)
    server.serve_forever()


def serve_wsgiref(port):
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_):
            pass

    make_server("127.0.0.1", port, application, handler_class=Quiet).serve_forever()


def serve_http_server(port):
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Echo(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def content(self):
            if "chunked" not in (self.headers["Transfer-Encoding"] or ""):
                return self.rfile.read(int(self.headers["Content-Length"] or 0))
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return body

        def echo(self):
            answer = record(
                self.command, self.path, self.headers.items(), self.content(), "raw"
            )
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer)

        def __getattr__(self, name):
            if name.startswith("do_"):
                return self.echo
            raise AttributeError(name)

        def log_message(self, *_):
            pass

    ThreadingHTTPServer(("127.0.0.1", port), Echo).serve_forever()


def serve_aiohttp(port):
    from aiohttp import web

    async def echo(request):
        body = await request.read()
        fields = [(text(name), text(value)) for name, value in request.raw_headers]
        return web.Response(
            body=record(request.method, request.raw_path, fields, body, "raw")
        )

    async def start():
        import asyncio

        # Below the router, which has a view of targets of its own.
        runner = web.ServerRunner(web.Server(echo, access_log=None))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await asyncio.Event().wait()

    import asyncio

    asyncio.run(start())


def serve_tornado(port):
    import tornado.httpserver
    import tornado.ioloop

    def echo(request):
        fields = list(request.headers.get_all())
        answer = record(request.method, request.uri, fields, request.body, "raw")
        from tornado.httputil import HTTPHeaders, ResponseStartLine

        request.connection.write_headers(
            ResponseStartLine("HTTP/1.1", 200, "OK"),
            HTTPHeaders({"Content-Length": str(len(answer))}),
            b"" if request.method == "HEAD" else answer,
        )
        request.connection.finish()

    tornado.httpserver.HTTPServer(echo).listen(port, "127.0.0.1")
    tornado.ioloop.IOLoop.current().start()


def serve_twisted(port):
    from twisted.internet import reactor
    from twisted.web import server

    class Echo(server.Request):
        def process(self):
            fields = [
                (text(name), text(value))
                for name, values in self.requestHeaders.getAllRawHeaders()
                for value in values
            ]
            self.content.seek(0)
            answer = record(
                text(self.method), text(self.uri), fields, self.content.read(), "raw"
            )
            self.setHeader(b"Content-Length", str(len(answer)).encode())
            if self.method != b"HEAD":
                self.write(answer)
            self.finish()

    site = server.Site(None)
    site.requestFactory = Echo
    reactor.listenTCP(port, site, interface="127.0.0.1")
    reactor.run()


async def asgi(scope, receive, send):
    """ASGI, for uvicorn."""
    if scope["type"] != "http":
        return
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    target = text(scope["raw_path"])
    if scope["query_string"]:
        target += "?" + text(scope["query_string"])
    fields = [(text(name), text(value)) for name, value in scope["headers"]]
    answer = record(scope["method"], target, fields, body, "raw")
    headers = [(b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


def serve_uvicorn(port):
    import uvicorn

    uvicorn.run(
        asgi, host="127.0.0.1", port=port, http="h11", ws="none", lifespan="off",
        log_level="critical", proxy_headers=False,
    )


def serve_scgi(port):
    """What nginx, Apache and lighttpd make of a request, as CGI variables."""
    import socketserver

    class Echo(socketserver.StreamRequestHandler):
        def handle(self):
            size = b""
            while (octet := self.rfile.read(1)) not in (b":", b""):
                size += octet
            if not size:
                return
            words = text(self.rfile.read(int(size))).split("\0")
            self.rfile.read(1)
            pairs = list(zip(words[::2], words[1::2]))
            variables = dict(pairs)
            body = self.rfile.read(int(variables.get("CONTENT_LENGTH") or 0))
            fields = [pair for pair in pairs if is_field(*pair)]
            answer = record(
                variables["REQUEST_METHOD"], variables["REQUEST_URI"], fields, body, "cgi"
            )
            self.wfile.write(b"Status: 200 OK\r\nContent-Type: text/plain\r\n\r\n" + answer)

    socketserver.ThreadingTCPServer.allow_reuse_address = True
    socketserver.ThreadingTCPServer.daemon_threads = True
    socketserver.ThreadingTCPServer(("127.0.0.1", port), Echo).serve_forever()


def open_log(path):
    global log
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


if __name__ == "__main__":
    open_log(sys.argv[3])
    globals()["serve_" + sys.argv[1]](int(sys.argv[2]))
elif "INTEROP_LOG" in os.environ:
    open_log(os.environ["INTEROP_LOG"])
