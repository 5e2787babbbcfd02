"""Servers that are tried by `run --servers`: some as origins, some as proxies, in front of the gateway or behind it.

Each has its configuration in `more/`, where @PORT@ is the port to listen on, @NEXT@ that of the server it forwards to,
and @FOLDER@ a folder of its own.
"""
import glob
import os
import socket
import sys
import time

from processes import PATIENCE, free_port
from servers import HERE, find, first_line

MORE = os.path.join(HERE, "more")
# What these proxies say of themselves and of the client, in fields of their own.
OWN_FIELDS = {"forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-server",
              "x-varnish"}


def filled(name, folder, values, called=None):
    """Writes a configuration with these values into the folder, and answers its path."""
    with open(os.path.join(MORE, name), encoding="utf-8") as file:
        text = file.read()
    for mark, value in values.items():
        text = text.replace(f"@{mark}@", str(value))
    path = os.path.join(folder, called or name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def wait_for(port):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError(f"nothing listens on port {port}")


class MoreServer:
    """One of them. `own_fields` are fields that it adds, so that nothing is said of them."""

    name = ""
    program = ""
    flag = "--version"
    own_fields = frozenset()

    def version(self):
        path = find(self.program)
        return path and first_line([path, self.flag])


class Puma(MoreServer):
    name = "Puma"
    program = "puma"

    def commands(self, port, log, folder):
        yield ["env", f"INTEROP_LOG={log}", find("puma"), "--quiet", "--environment", "production", "--threads", "2:2",
               "--bind", f"tcp://127.0.0.1:{port}", os.path.join(MORE, "puma.ru")]


class Yaws(MoreServer):
    name = "Yaws"
    program = "yaws"

    def commands(self, port, log, folder):
        path = filled("yaws.conf", folder, {"PORT": port, "FOLDER": folder})
        # The library's folder has the version in its name.
        libraries = max(glob.glob("/usr/lib/yaws*/include"), default="/usr/lib/yaws/include")
        yield ["sh", "-c",
               'cd "$1" && sed "s,yaws/include,$2," "$3" > echo.erl && erlc echo.erl && exec env HOME="$1"'
               ' INTEROP_LOG="$4" "$0" --interactive --erlarg "-noinput" --runmod crypto --conf "$5"',
               find("yaws"), folder, libraries, os.path.join(MORE, "echo.erl"), log, path]


class Jetty(MoreServer):
    """As an origin."""

    name = "Jetty"
    program = "java"

    def version(self):
        jars = glob.glob("/usr/share/java/jetty9-server-9*.jar")
        has_proxy = os.path.exists("/usr/share/java/jetty9-proxy.jar")
        return find("javac") and has_proxy and jars and ".".join(os.path.basename(jars[0]).split("-")[2].split(".")[:3])

    def java(self, kind, port, other):
        jars = glob.glob("/usr/share/java/jetty9-[a-z]*.jar") + ["/usr/share/java/servlet-api.jar"]
        return ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.eclipse.jetty.LEVEL=WARN",
                "-cp", ":".join(jars), os.path.join(MORE, "Jetty.java"), kind, str(port), str(other)]

    def commands(self, port, log, folder):
        yield self.java("echo", port, log)


class Proxy(MoreServer):
    """A proxy, of the recorder as an origin, or of the gateway."""

    own_fields = OWN_FIELDS

    def commands(self, port, log, folder):
        recorder = free_port()
        yield [sys.executable, os.path.join(HERE, "recorder.py"), str(recorder), log]
        # Squid tries its server when it starts, and for a while trusts what it found.
        wait_for(recorder)
        yield self.command(port, recorder, folder)

    def command(self, port, forwards_to, folder):
        raise NotImplementedError


class H2O(Proxy):
    name = "h2o"
    program = "h2o"

    def command(self, port, forwards_to, folder):
        values = {"PORT": port, "NEXT": forwards_to, "FOLDER": folder}
        return [find("h2o"), "--conf", filled("h2o.yaml", folder, values)]


class Squid(Proxy):
    name = "Squid"
    program = "squid"
    flag = "-v"
    own_fields = OWN_FIELDS | {"cache-control", "surrogate-capability"}

    def command(self, port, forwards_to, folder):
        # Started by root it becomes the user `proxy`.
        os.chmod(folder, 0o777)
        values = {"PORT": port, "NEXT": forwards_to, "FOLDER": folder}
        # Of several that share a name, one would answer for the others.
        return [find("squid"), "-N", "-n", f"interop{port}", "-f", filled("squid.conf", folder, values)]


class Varnish(Proxy):
    name = "Varnish"
    program = "varnishd"
    flag = "-V"

    def command(self, port, forwards_to, folder):
        path = filled("varnish.vcl", folder, {"NEXT": forwards_to})
        # Without a jail it runs as whoever has started it. It compiles its configuration with gcc.
        return [find("varnishd"), "-F", "-j", "none", "-a", f"127.0.0.1:{port}", "-f", path, "-n",
                os.path.join(folder, "varnish"), "-s", "malloc,16m", "-p", "http_req_size=262144",
                "-p", "http_req_hdr_len=131072", "-p", "workspace_client=768k", "-p", "workspace_backend=768k",
                "-p", "http_max_hdr=256", "-p", "thread_pool_min=5", "-p", "thread_pools=1", "-p", "timeout_idle=30"]


class TrafficServer(Proxy):
    name = "Traffic Server"
    program = "traffic_server"
    own_fields = OWN_FIELDS | {"client-ip"}

    def command(self, port, forwards_to, folder):
        home = os.path.join(folder, "trafficserver")
        places = {name: os.path.join(home, name) for name in ["etc", "run", "log", "cache"]}
        for place in places.values():
            os.makedirs(place)
        # What the package has as its layout belongs to root and to a service; this one is in a folder of its own.
        layout = {"prefix": home, "exec_prefix": home, "sysconfdir": places["etc"], "datadir": places["cache"],
                  "localstatedir": places["run"], "runtimedir": places["run"], "logdir": places["log"],
                  "cachedir": places["cache"], "bindir": "/usr/bin", "sbindir": "/usr/bin",
                  "libexecdir": "/usr/lib/trafficserver/modules", "includedir": home, "mandir": home, "infodir": home}
        root = os.path.join(home, "runroot.yaml")
        with open(root, "w", encoding="utf-8") as file:
            file.writelines(f"{name}: {place}\n" for name, place in layout.items())
        filled("trafficserver.records", places["etc"], {"PORT": port}, "records.config")
        filled("trafficserver.ip_allow", places["etc"], {}, "ip_allow.yaml")
        for name in ["storage.config", "plugin.config", "volume.config", "hosting.config", "cache.config"]:
            with open(os.path.join(places["etc"], name), "w", encoding="utf-8"):
                pass
        with open(os.path.join(places["etc"], "remap.config"), "w", encoding="utf-8") as file:
            file.write(f"regex_map http://.*/ http://127.0.0.1:{forwards_to}/\nmap / http://127.0.0.1:{forwards_to}/\n")
        return [find("traffic_server"), f"--run-root={root}"]


class JettyProxy(Proxy, Jetty):
    name = "Jetty's proxy"

    def command(self, port, forwards_to, folder):
        return self.java("proxy", port, forwards_to)



ORIGINS = [Puma(), Jetty(), Yaws()]
PROXIES = [H2O(), TrafficServer(), Squid(), Varnish(), JettyProxy()]
