#!/usr/bin/env python3
"""Compares what applications execute behind the gateway with what was verified.

usage: applications.py [--all] [--only BACKEND]... [--group GROUP]... PORTCULLIS

Each backend is a real server with a real application that writes down what it executes. Each
attack is sent through a gateway to it; what ran must be what was signed, once. The second table
is measured without rules' help: which servers run an application on a request that is cut short.

Without --all, a choice of backends and no more than a few minutes. Backends that are not installed
are named and left out.

Exit status: 0 when all held, 1 when something is WRONG or does not start, 2 when no backend is
there.
"""
import argparse
import concurrent.futures
import os
import shutil
import sys
import tempfile
import time

import apple
import report
import trial
import truncation
from attacks import ATTACKS, GROUPS
from backends import BACKENDS
from gateway import devices
from processes import end_when_told
from stand import Stand

# So many backends at once; each has a server, a gateway and eight clients.
SIDE_BY_SIDE = 6
# For the short run: one of each kind that answers differently.
SHORT = {"gunicorn sync, Django", "uvicorn ASGI, Django", "hypercorn HTTP/2, Django", "werkzeug, Flask", "http.server",
         "mod_wsgi daemon, Django", "mod_php, Apache", "PHP-FPM, nginx", "php -S", "lighttpd CGI",
         "Express", "Node, new URL", "aiohttp"}


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--all", action="store_true", help="all backends")
    parser.add_argument("--only", action="append", metavar="BACKEND", help="this backend")
    parser.add_argument("--group", action="append", choices=GROUPS, help="this group of attacks")
    parser.add_argument("program", metavar="PORTCULLIS")
    return parser.parse_args()


def wanted(backend, chosen):
    if chosen.only:
        return backend.name in chosen.only
    return chosen.all or backend.name in SHORT


def begin(backend, program, folder, keys, played):
    """A port that was free may be taken when the server asks for it; so it is tried again."""
    try:
        return Stand(backend, program, os.path.join(folder, "1"), keys, played)
    except RuntimeError:
        return Stand(backend, program, os.path.join(folder, "2"), keys, played)


def examine(backend, program, folder, keys, attacks, played):
    """One backend: all attacks, and what it does with requests that are cut short."""
    begun = time.monotonic()
    stand = None
    try:
        stand = begin(backend, program, folder, keys, played)
        results = trial.run(stand, attacks)
        cut = truncation.measure(stand)
        return report.Examined(backend, results, cut, time.monotonic() - begun)
    except Exception as error:
        return report.Examined(backend, [], {}, time.monotonic() - begun, str(error))
    finally:
        if stand:
            stand.stop()


def main():
    chosen = options()
    attacks = [attack for attack in ATTACKS if not chosen.group or attack.group in chosen.group]
    there = []
    for backend in BACKENDS:
        if wanted(backend, chosen):
            if backend.version():
                there.append(backend)
            else:
                print(f"\n!!! interoperability: NOT CHECKED, since it is not installed: {backend.name}\n")
    if not there:
        return 2
    folder = tempfile.mkdtemp(prefix="pg-")
    end_when_told(None if "INTEROP_KEEP" in os.environ else folder)
    for place in [folder, os.path.join(folder, "1"), os.path.join(folder, "2")]:
        os.makedirs(place, exist_ok=True)
        os.chmod(place, 0o755)
    # Some attacks go on until Apple has a bit.
    keys = devices(2 * len(attacks) + 120)
    program = os.path.abspath(chosen.program)
    stand_in = apple.program_beside(program)
    if not stand_in:
        print("\n!!! interoperability: Apple's bits are NOT CHECKED: portcullis-apple is not built\n")
    played = None
    try:
        if stand_in:
            played = apple.Apple(stand_in, os.path.join(folder, "apple"))
        with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            examined = list(pool.map(
                lambda backend: examine(
                    backend, program, folder, keys,
                    [attack for attack in attacks if backend is there[0] or not attack.once],
                    played,
                ), there
            ))
    finally:
        if played:
            played.stop()
        if "INTEROP_KEEP" not in os.environ:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print("kept:", folder)
    return report.tell(examined, GROUPS)


if __name__ == "__main__":
    sys.exit(main())
