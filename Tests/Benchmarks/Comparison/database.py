"""A PostgreSQL of the measurement's own, reached by a Unix socket."""
import os
import pwd
import shutil
import subprocess
import time

from failure import Failure
from gauges import cpu_seconds_of_children

PROGRAMS = "/usr/lib/postgresql"
SETTINGS = {
    "listen_addresses": "''", "max_connections": "60", "shared_buffers": "256MB",
    "autovacuum_naptime": "5s", "max_wal_size": "4GB", "fsync": "on",
}


def programs():
    """The folder of initdb and postgres, of the newest version; none where there is none."""
    if not os.path.isdir(PROGRAMS):
        return None
    versions = sorted(os.listdir(PROGRAMS), key=lambda name: float(name), reverse=True)
    return os.path.join(PROGRAMS, versions[0], "bin") if versions else None


class Database:
    """A server. Leaving it ends it."""

    def __init__(self, folder):
        self.programs = programs()
        if not self.programs:
            raise Failure("there is no PostgreSQL", "deploy/install-packages postgresql")
        self.folder = os.path.join(folder, "database")
        self.process = None

    def __enter__(self):
        os.chmod(os.path.dirname(self.folder), 0o755)
        os.mkdir(self.folder)
        if os.getuid() == 0:
            # The server refuses to be root.
            owner = pwd.getpwnam("postgres")
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        self._run("initdb", "--auth=trust", "--username=portcullis", "-D", self.data)
        with open(os.path.join(self.data, "postgresql.conf"), "a") as file:
            file.write(f"unix_socket_directories = '{self.folder}'\n")
            file.writelines(f"{name} = {value}\n" for name, value in SETTINGS.items())
        log = open(os.path.join(self.folder, "log"), "w")
        self.process = subprocess.Popen(
            self._as_owner("postgres", "-D", self.data), stdout=log, stderr=log, cwd=self.folder
        )
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self.process.poll() is None:
            if subprocess.run(self._client("SELECT 1"), capture_output=True).returncode == 0:
                return self
            time.sleep(0.05)
        self.__exit__()
        raise Failure("PostgreSQL does not start", f"see {self.folder}/log")

    def __exit__(self, *_):
        if self.process:
            # SIGINT: connections are ended.
            self.process.send_signal(2)
            self.process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def data(self):
        return os.path.join(self.folder, "data")

    @property
    def address(self):
        return f"host={self.folder} dbname=postgres user=portcullis"

    def _as_owner(self, program, *arguments):
        command = [os.path.join(self.programs, program), *arguments]
        if os.getuid() != 0:
            return command
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]

    def _run(self, program, *arguments):
        done = subprocess.run(
            self._as_owner(program, *arguments), capture_output=True, text=True, cwd="/"
        )
        if done.returncode:
            raise Failure(f"{program}: {done.stderr}", "see what it says above")

    def _client(self, statement):
        return ["psql", "-X", "-A", "-t", "-d", self.address, "-c", statement]

    def ask(self, statement):
        done = subprocess.run(self._client(statement), capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"psql: {done.stderr}", statement)
        return done.stdout.strip()

    def set(self, name, value):
        """Changes a setting, for connections that are there too."""
        self.ask(f"ALTER SYSTEM SET {name} = '{value}'")
        self.ask("SELECT pg_reload_conf()")
        time.sleep(0.2)

    def gauges(self):
        """Processor time so far, transactions that were committed, and bytes of the log."""
        # What a connection counts is published when it has been idle for a second.
        time.sleep(1.2)
        commits, octets = self.ask(
            "SELECT xact_commit, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"
            " FROM pg_stat_database WHERE datname = 'postgres'"
        ).split("|")
        seconds = cpu_seconds_of_children(self.process.pid)
        return {"cpu": seconds, "commits": int(commits), "wal": int(octets)}
