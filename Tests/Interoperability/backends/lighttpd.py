"""lighttpd with a CGI program."""
import os
import shutil

from backends.backend import APPS, Backend, find, version_of


class LighttpdCGI(Backend):
    name = "lighttpd CGI"
    has_scripts = True

    def version(self):
        return find("lighttpd") and version_of(find("lighttpd"), "-v")

    def commands(self, port, folder):
        root = os.path.join(folder, "www")
        os.makedirs(os.path.join(root, "api"))
        for name in ["record.py", "routes.py", "app.cgi"]:
            shutil.copy(os.path.join(APPS, name), root)
        # The same program, reached by its path.
        for name in ["record.py", "routes.py"]:
            shutil.copy(os.path.join(APPS, name), os.path.join(root, "api"))
        shutil.copy(os.path.join(APPS, "app.cgi"), os.path.join(root, "api", "pay.php"))
        path = os.path.join(folder, "lighttpd.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                f"server.document-root = \"{root}\"\nserver.port = {port}\n"
                "server.bind = \"127.0.0.1\"\n"
                "server.modules = ( \"mod_rewrite\", \"mod_cgi\", \"mod_setenv\" )\n"
                f"server.errorlog = \"{folder}/error\"\n"
                "server.stream-request-body = 0\nserver.max-keep-alive-idle = 30\n"
                f"setenv.set-environment = ( \"INTEROP_LOG\" => \"{folder}/log\" )\n"
                "cgi.assign = ( \".cgi\" => \"\", \".php\" => \"\" )\n"
                "url.rewrite-once = ( \"^(/(?!api/).*)$\" => \"/app.cgi$1\" )\n"
            )
        yield [find("lighttpd"), "-D", "-f", path]
