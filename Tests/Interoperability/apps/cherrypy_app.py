"""A CherryPy application: its dispatcher finds handlers by their attributes' names."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cherrypy

import record
from routes import READS_CONTENT, ROUTES, response_fields


def listed(values):
    return {name: value if isinstance(value, list) else [value] for name, value in values.items()}


def execute(handler):
    request = cherrypy.request
    query = listed(cherrypy.lib.httputil.parse_query_string(request.query_string))
    record.entered(handler, request.method, request.path_info, query)
    fields = {name.lower(): value for name, value in request.headers.items()}
    fields |= record.cookie_fields({name: one.value for name, one in request.cookie.items()})
    content, form = b"", {}
    if request.method in READS_CONTENT:
        content = request.rfile.read()
        if "form-urlencoded" in fields.get("content-type", ""):
            form = listed(cherrypy.lib.httputil.parse_query_string(content.decode("latin-1")))
    record.executed(handler, request.method, request.path_info, query, form, fields, content)
    for name, value in response_fields(fields, query):
        cherrypy.response.headers[name] = value
    return {"handler": handler, "query": query}


def page(handler, methods):
    @cherrypy.expose
    @cherrypy.tools.json_out()
    def run(self, **_):
        allowed = not methods or cherrypy.request.method in methods
        return execute(handler if allowed else "none")

    return run


class Node:
    """A part of a path."""


class Files:
    @cherrypy.expose
    @cherrypy.tools.json_out()
    def default(self, *rest, **_):
        return execute(record.file_handler("/".join(rest)))


class Root:
    files = Files()

    @cherrypy.expose
    @cherrypy.tools.json_out()
    def default(self, *_, **__):
        cherrypy.response.status = 404
        return execute("none")


root = Root()
for path, handler, methods in [*ROUTES, ("/place_order", "place", ["POST"])]:
    node = root
    *folders, name = path.strip("/").split("/")
    for folder in folders:
        if not hasattr(node, folder):
            setattr(node, folder, Node())
        node = getattr(node, folder)
    setattr(type(node), name or "index", page(handler, methods))

# Content stays as it was sent, for `execute`.
application = cherrypy.tree.mount(root, "/", {"/": {"request.process_request_body": False}})
cherrypy.config.update({"environment": "embedded", "log.screen": False, "request.show_tracebacks": True})
