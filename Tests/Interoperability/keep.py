#!/usr/bin/env python3
"""Runs a command, and ends everything that it has started when nobody wants it any more.

usage: keep.py COMMAND [WORD...]

Standard input is a pipe whose other end the starter holds. When the pipe ends, because the starter
has died in whatever way, the command and all processes that it has started are killed. TERM gives
the command some seconds to end by itself first. Exit status: the command's.

A death signal alone (PR_SET_PDEATHSIG) is not enough: the workers of Apache and PHP-FPM lose it when
they change their user. They become children of this process when their master dies, since it is a
subreaper.
"""
import ctypes
import os
import select
import signal
import sys
import time

PATIENCE = 5.0
# linux/prctl.h
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def prctl(option, value):
    if ctypes.CDLL(None, use_errno=True).prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def start(command):
    """Starts the command in a session of its own; it dies with this process."""
    keeper = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == keeper:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            # Python ignores them, and what is ignored stays so over exec.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(127)


def descendants(ancestor):
    """The living processes that a process has started, directly or not."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except OSError:
                continue
            if state != b"Z":
                children.setdefault(int(parent), []).append(int(name))
    found, new = [], [ancestor]
    while new:
        new = [child for parent in new for child in children.get(parent, [])]
        found += new
    return found


def kill_all():
    """Kills all descendants. What one of them has started in the meantime becomes a child of this
    process when its parent dies, so it is found in the next round."""
    while True:
        for process in descendants(os.getpid()):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def reap(command):
    """Takes the statuses of processes that have ended; answers the command's."""
    status = None
    while True:
        try:
            process, found = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if process == 0:
            return status
        if process == command:
            status = os.waitstatus_to_exitcode(found)


def terminate(command):
    for end in (os.killpg, os.kill):
        try:
            return end(command, signal.SIGTERM)
        except ProcessLookupError:
            # It has no session of its own yet.
            continue
    return None


def main():
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    command = start(sys.argv[1:])
    status, deadline = None, None
    while status is None:
        rest = None if deadline is None else max(deadline - time.monotonic(), 0)
        ready = select.select([0, wake], [], [], rest)[0]
        if 0 in ready or not ready:
            break
        if signal.SIGTERM in os.read(wake, 512) and deadline is None:
            deadline = time.monotonic() + PATIENCE
            terminate(command)
        status = reap(command)
    kill_all()
    return 128 + signal.SIGKILL if status is None else abs(status)


if __name__ == "__main__":
    sys.exit(main())
