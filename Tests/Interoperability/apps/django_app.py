"""A Django project in one file, for WSGI (`application`) and ASGI (`asgi`)."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import django
from django.conf import settings
from django.http import HttpResponseNotAllowed, JsonResponse
from django.urls import path, re_path

import record
from routes import READS_CONTENT, ROUTES, response_fields

settings.configure(
    ALLOWED_HOSTS=["*"], DEBUG=False, ROOT_URLCONF=__name__, SECRET_KEY="interop",
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"], APPEND_SLASH=False,
    LOGGING_CONFIG=None,
)
django.setup()


def execute(handler, request):
    query = {name: request.GET.getlist(name) for name in request.GET}
    record.entered(handler, request.method, request.path, query)
    content, form = b"", {}
    if request.method in READS_CONTENT:
        content = request.body
        form = {name: request.POST.getlist(name) for name in request.POST}
    fields = {name.lower(): value for name, value in request.headers.items()}
    fields |= record.cookie_fields(request.COOKIES)
    record.executed(handler, request.method, request.path, query, form, fields, content)
    answer = JsonResponse({"handler": handler, "query": query})
    for name, value in response_fields(fields, query):
        answer[name] = value
    return answer


def view(handler, methods):
    def run(request):
        # As django.views.generic.View: HEAD runs what GET runs.
        allowed = methods and methods + (["HEAD"] if "GET" in methods else [])
        if allowed and request.method not in allowed:
            return HttpResponseNotAllowed(allowed)
        return execute(handler, request)

    return run


def files(request, rest):
    return execute(record.file_handler(rest), request)


def elsewhere(request):
    answer = execute("none", request)
    answer.status_code = 404
    return answer


urlpatterns = [path(route.lstrip("/"), view(name, methods)) for route, name, methods in ROUTES]
urlpatterns += [re_path("^files/(.*)$", files), re_path("", elsewhere)]

from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application

application = get_wsgi_application()
asgi = get_asgi_application()
