"""Sinatra on Puma, as Debian has them."""
import os

from backends.backend import APPS, Backend, find, version_of


class Sinatra(Backend):
    name = "Puma, Sinatra"

    def version(self):
        has_sinatra = os.path.isdir("/usr/share/rubygems-integration") and any(
            name.startswith("sinatra-")
            for _, _, names in os.walk("/usr/share/rubygems-integration") for name in names
        )
        return version_of("puma", "--version") if find("puma") and has_sinatra else None

    def commands(self, port, folder):
        yield [find("puma"), "--quiet", "--environment", "production", "--threads", "8:8",
               "--bind", f"tcp://127.0.0.1:{port}",
               os.path.join(APPS, "sinatra", "config.ru")]
