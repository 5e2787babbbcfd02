#!/usr/bin/env python3
"""Looks whether servers of the tests are left running when what has started them is killed.

usage: ending.py PORTCULLIS

Starts some backends with their gateways, those whose workers are the hardest to end, by a process
that then waits. Ends that process by TERM, by KILL, and by the end of the one that has started it.
Everything that it has started must be gone soon.

Exit status: 0 when nothing was left, 1 when something was, 2 when no backend is there.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from backends import BACKENDS
from gateway import devices
from keep import PR_SET_CHILD_SUBREAPER, descendants, kill_all, prctl
from processes import end_when_told
from stand import Stand

# Their workers have another user than their masters, or are many, or are threads' children.
HARD = {"mod_php, Apache", "mod_wsgi daemon, Django", "PHP-FPM, nginx", "php -S", "lighttpd CGI",
        "gunicorn sync, Django", "Express"}
# One that starts workers of another user, and one that does not. That the end of its starter reaches a process does
# not depend on what that has started.
SOME = {"mod_php, Apache", "Express"}
PATIENCE = 20.0
HOW = {"TERM": signal.SIGTERM, "KILL": signal.SIGKILL}


def chosen(names=HARD):
    return [backend for backend in BACKENDS if backend.name in names and backend.version()]


def begin(program, folder, names):
    """Starts the servers, says so, and waits to be killed."""
    end_when_told(folder)
    keys = devices(4)
    stands = [Stand(backend, program, folder, keys) for backend in chosen(names)]
    print(len(stands), flush=True)
    while True:
        signal.pause()


def name(process):
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode("latin-1")[:100]
    except OSError:
        return "a process that has just ended"


def attempt(program, how, through_starter):
    """Starts and kills; answers what was left and whether the folder was."""
    folder = tempfile.mkdtemp(prefix="pg-")
    os.chmod(folder, 0o755)
    names = SOME if through_starter and chosen(SOME) else HARD
    command = [sys.executable, os.path.abspath(__file__), "--begin", program, folder, *names]
    if through_starter:
        command = ["sh", "-c", '"$@" & wait', "sh", *command]
    starter = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        if not starter.stdout.readline():
            raise RuntimeError("the servers did not start")
        count = len(descendants(starter.pid))
        starter.send_signal(HOW[how])
        starter.wait()
        deadline = time.monotonic() + PATIENCE
        while (left := descendants(os.getpid())) and time.monotonic() < deadline:
            time.sleep(0.05)
        return count, [name(process) for process in left], os.path.exists(folder)
    finally:
        kill_all()
        starter.stdout.close()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    if sys.argv[1] == "--begin":
        return begin(sys.argv[2], sys.argv[3], sys.argv[4:])
    if not chosen():
        return 2
    # What loses its parent becomes a child of this process, so nothing is left unseen.
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    status = 0
    for how, through_starter in [("TERM", False), ("KILL", False), ("KILL", True)]:
        count, left, has_folder = attempt(os.path.abspath(sys.argv[1]), how, through_starter)
        whom = "its starter" if through_starter else "it"
        print(f"{how} to {whom}: {count} processes, {len(left)} left")
        for line in left:
            print(f"WRONG: left after {how} to {whom}: {line}")
        if has_folder and how == "TERM":
            print(f"WRONG: the folder was left after {how}")
        if left or (has_folder and how == "TERM"):
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
