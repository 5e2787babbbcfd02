"""The servers with their applications, in the order of the tables."""
from backends.apache import ModPHP, ModWSGI
from backends.lighttpd import LighttpdCGI
from backends.node import Express, PlainNode
from backends.php import NginxFPM, PHPServer
from backends.python import PythonServer, Script
from backends.ruby import Sinatra
from backends.tomcat import Tomcat

PORT = "{port}"


def gunicorn(kind, *options):
    return PythonServer(
        f"gunicorn {kind}, Django", "gunicorn",
        ["-m", "gunicorn", "--bind", "127.0.0.1:{port}", "--worker-class", kind, *options,
         "--log-level", "critical", "django_app:application"],
    )


BACKENDS = [
    gunicorn("sync", "--workers", "3"),
    gunicorn("gthread", "--threads", "16", "--keep-alive", "30"),
    gunicorn("gevent", "--keep-alive", "30"),
    PythonServer(
        "uvicorn WSGI, Django", "uvicorn",
        ["-m", "uvicorn", "--port", PORT, "--log-level", "critical", "--interface", "wsgi",
         "--no-proxy-headers", "django_app:application"],
    ),
    PythonServer(
        "uvicorn ASGI, Django", "uvicorn",
        ["-m", "uvicorn", "--port", PORT, "--log-level", "critical", "--no-proxy-headers",
         "--lifespan", "off", "django_app:asgi"],
    ),
    PythonServer(
        "hypercorn WSGI, Django", "hypercorn",
        ["-m", "hypercorn", "--bind", "127.0.0.1:{port}", "--log-level", "CRITICAL",
         "wsgi:django_app:application"],
    ),
    PythonServer(
        "hypercorn ASGI, Django", "hypercorn",
        ["-m", "hypercorn", "--bind", "127.0.0.1:{port}", "--log-level", "CRITICAL",
         "asgi:django_app:asgi"],
    ),
    PythonServer(
        "hypercorn HTTP/2, Django", "hypercorn",
        ["-m", "hypercorn", "--bind", "127.0.0.1:{port}", "--log-level", "CRITICAL",
         "asgi:django_app:asgi"], http2=True,
    ),
    PythonServer(
        "granian WSGI, Django", "granian",
        ["-m", "granian", "--port", PORT, "--interface", "wsgi", "--no-log",
         "--blocking-threads", "8", "django_app:application"],
    ),
    PythonServer(
        "granian ASGI, Django", "granian",
        ["-m", "granian", "--port", PORT, "--interface", "asginl", "--no-log",
         "django_app:asgi"],
    ),
    PythonServer(
        "daphne, Django", "daphne",
        ["-m", "daphne", "-b", "127.0.0.1", "-p", PORT, "-v", "0", "django_app:asgi"],
    ),
    PythonServer(
        "cheroot, Django", "cheroot",
        ["-m", "cheroot", "--bind", "127.0.0.1:{port}", "django_app:application"],
    ),
    PythonServer(
        "cheroot, CherryPy", "cherrypy",
        ["-m", "cheroot", "--bind", "127.0.0.1:{port}", "cherrypy_app:application"],
    ),
    PythonServer(
        "waitress, Flask", "waitress",
        ["-m", "waitress", "--listen", "127.0.0.1:{port}", "--threads", "8",
         "flask_app:application"],
    ),
    PythonServer(
        "gunicorn gthread, Flask", "gunicorn",
        ["-m", "gunicorn", "--bind", "127.0.0.1:{port}", "--threads", "16", "--log-level",
         "critical", "flask_app:application"],
    ),
    PythonServer(
        "werkzeug, Flask", "flask",
        ["-m", "flask", "--app", "flask_app:application", "run", "--port", PORT],
    ),
    PythonServer(
        "aiohttp", "aiohttp",
        ["-m", "aiohttp.web", "-H", "127.0.0.1", "-P", PORT, "aiohttp_app:application"],
    ),
    Script("wsgiref, Django", "wsgiref"),
    Script("http.server", "http.server"),
    ModWSGI("mod_wsgi embedded, Django", daemon=False),
    ModWSGI("mod_wsgi daemon, Django", daemon=True),
    ModPHP(),
    NginxFPM(),
    PHPServer(),
    LighttpdCGI(),
    Express(),
    PlainNode(),
    Sinatra(),
    Tomcat(),
]
