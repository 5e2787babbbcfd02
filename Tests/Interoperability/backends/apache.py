"""Apache with PHP and with Python inside of it."""
import os
import shutil

from backends.backend import APPS, Backend, find, version_of
from backends.php import web_root

MODULES = "/usr/lib/apache2/modules"


def configuration(port, folder, modules, lines):
    load = "".join(
        f"<IfModule !{module}_module>\nLoadModule {module}_module {MODULES}/{file}\n</IfModule>\n"
        for module, file in modules.items()
    )
    return (
        f"ServerRoot {folder}\nPidFile {folder}/pid\nErrorLog {folder}/error\n{load}"
        "User nobody\nGroup nogroup\nMutex posixsem\n"
        f"Listen 127.0.0.1:{port}\nServerName interop.test\nStartServers 1\n"
        f"AllowEncodedSlashes NoDecode\nKeepAliveTimeout 30\nTimeout 10\n{lines}"
    )


class Apache(Backend):
    module = ""

    def version(self):
        if find("apache2") and os.path.exists(os.path.join(MODULES, self.module)):
            return version_of(find("apache2"), "-v")
        return None

    def commands(self, port, folder):
        path = os.path.join(folder, "apache.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.settings(port, folder))
        yield [find("apache2"), "-DFOREGROUND", "-f", path]


class ModPHP(Apache):
    name = "mod_php, Apache"
    adds_fields = True
    has_scripts = True

    @property
    def module(self):
        found = [name for name in os.listdir(MODULES) if name.startswith("libphp")]
        return max(found, default="libphp.so")

    def settings(self, port, folder):
        root = web_root(folder)
        modules = {"mpm_prefork": "mod_mpm_prefork.so", "authz_core": "mod_authz_core.so",
                   "dir": "mod_dir.so", "env": "mod_env.so", "php": self.module}
        return configuration(port, folder, modules, (
            f"DocumentRoot {root}\nFallbackResource /index.php\nDirectoryIndex index.php\n"
            "PassEnv INTEROP_LOG\nMinSpareServers 4\nMaxSpareServers 12\n"
            "<FilesMatch \"\\.php$\">\nSetHandler application/x-httpd-php\n</FilesMatch>\n"
        ))


class ModWSGI(Apache):
    """With the Django that Debian has: Apache's Python is Debian's too."""

    adds_fields = True

    module = "mod_wsgi.so"

    def __init__(self, name, daemon):
        self.name = name
        self.daemon = daemon

    def version(self):
        django = os.path.isdir("/usr/lib/python3/dist-packages/django")
        return super().version() if django else None

    def settings(self, port, folder):
        apps = os.path.join(folder, "apps")
        shutil.copytree(APPS, apps, ignore=shutil.ignore_patterns("__pycache__"))
        script = os.path.join(apps, "app.wsgi")
        with open(script, "w", encoding="utf-8") as file:
            file.write(
                f"import os, sys\nos.environ['INTEROP_LOG'] = {os.path.join(folder, 'log')!r}\n"
                f"sys.path.insert(0, {apps!r})\nfrom django_app import application\n"
            )
        modules = {"mpm_event": "mod_mpm_event.so", "authz_core": "mod_authz_core.so",
                   "wsgi": "mod_wsgi.so"}
        process = ""
        if self.daemon:
            process = "WSGIDaemonProcess interop threads=8\nWSGIProcessGroup interop\n"
        return configuration(port, folder, modules, (
            f"WSGISocketPrefix {folder}/wsgi\n{process}WSGIApplicationGroup %{{GLOBAL}}\n"
            f"WSGIScriptAlias / {script}\n"
        ))
