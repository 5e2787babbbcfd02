"""An aiohttp application: a server and a framework of its own, with a parser of cookies of its own."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from aiohttp import web

import record
from routes import READS_CONTENT, ROUTES, response_fields


def listed(values):
    return {name: [str(value) for value in values.getall(name)] for name in values}


async def execute(handler, request, status=200):
    query = listed(request.query)
    record.entered(handler, request.method, request.path, query)
    fields = {name.lower(): value for name, value in request.headers.items()}
    fields |= record.cookie_fields(request.cookies)
    content, form = b"", {}
    if request.method in READS_CONTENT:
        content = await request.read()
        if "form-urlencoded" in fields.get("content-type", ""):
            form = listed(await request.post())
    record.executed(handler, request.method, request.path, query, form, fields, content)
    answer = web.json_response({"handler": handler, "query": query}, status=status)
    for name, value in response_fields(fields, query):
        answer.headers[name] = value
    return answer


def named(handler):
    async def run(request):
        return await execute(handler, request)

    return run


async def files(request):
    return await execute(record.file_handler(request.match_info["rest"]), request)


async def elsewhere(request):
    return await execute("none", request, 404)


def application(_):
    made = web.Application()
    for route, name, methods in ROUTES:
        for method in methods or ["*"]:
            made.router.add_route(method, route, named(name))
    made.router.add_route("GET", "/files/{rest:.*}", files)
    made.router.add_route("*", "/{rest:.*}", elsewhere)
    return made
