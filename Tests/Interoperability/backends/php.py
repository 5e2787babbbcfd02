"""PHP behind nginx, and PHP's own server."""
import glob
import os
import shutil

from backends.backend import APPS, Backend, find, version_of


def web_root(folder):
    """A copy of the scripts that the server's own user can read."""
    root = os.path.join(folder, "www")
    shutil.copytree(os.path.join(APPS, "php"), root)
    return root


class PHPServer(Backend):
    name = "php -S"
    adds_fields = True
    has_scripts = True

    def version(self):
        return find("php") and version_of("php", "--version")

    def commands(self, port, folder):
        yield [find("php"), "-d", "display_errors=0", "-S", f"127.0.0.1:{port}",
               "-t", web_root(folder)]

    def environment(self):
        return {"PHP_CLI_SERVER_WORKERS": "4"}


class NginxFPM(Backend):
    name = "PHP-FPM, nginx"
    adds_fields = True
    has_scripts = True

    def fpm(self):
        found = sorted(glob.glob("/usr/sbin/php-fpm*"))
        return find("php-fpm") or (found[-1] if found else None)

    def version(self):
        return find("nginx") and self.fpm() and version_of(self.fpm(), "--version")

    def commands(self, port, folder):
        root = web_root(folder)
        pool = os.path.join(folder, "fpm.conf")
        with open(pool, "w", encoding="utf-8") as file:
            file.write(
                f"[global]\nerror_log = {folder}/fpm.error\ndaemonize = no\n"
                f"[interop]\nlisten = {folder}/fpm\nlisten.mode = 0666\n"
                "user = nobody\ngroup = nogroup\npm = static\npm.max_children = 6\n"
                "clear_env = no\n"
            )
        yield [self.fpm(), "--nodaemonize", "--fpm-config", pool]
        path = os.path.join(folder, "nginx.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.nginx(port, folder, root))
        yield [find("nginx"), "-p", folder, "-e", f"{folder}/error", "-c", path]

    def nginx(self, port, folder, root):
        temporary = "".join(
            f"{kind}_temp_path {folder}/{kind};\n"
            for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        )
        names = {
            "REQUEST_METHOD": "$request_method", "REQUEST_URI": "$request_uri",
            "QUERY_STRING": "$query_string", "CONTENT_TYPE": "$content_type",
            "CONTENT_LENGTH": "$content_length", "SERVER_PROTOCOL": "$server_protocol",
            "SCRIPT_NAME": "$fastcgi_script_name", "PATH_INFO": "$fastcgi_path_info",
        }
        lines = "".join(f"fastcgi_param {name} {value};\n" for name, value in names.items())
        index = lines.replace("$fastcgi_script_name", "/index.php")
        return (
            f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log {folder}/error;\n"
            f"events {{}}\nhttp {{\naccess_log off;\n{temporary}"
            f"server {{\nlisten 127.0.0.1:{port};\nroot {root};\n"
            f"location / {{\nfastcgi_pass unix:{folder}/fpm;\n{index}"
            f"fastcgi_param SCRIPT_FILENAME {root}/index.php;\n}}\n"
            "location ~ ^/api/[^/]+\\.php(/|$) {\n"
            "fastcgi_split_path_info ^(.+?\\.php)(/.*)?$;\n"
            f"fastcgi_pass unix:{folder}/fpm;\n{lines}"
            f"fastcgi_param SCRIPT_FILENAME {root}$fastcgi_script_name;\n}}\n}}\n}}\n"
        )
