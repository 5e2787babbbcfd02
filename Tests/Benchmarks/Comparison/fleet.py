"""What a verified request costs where gateways share a PostgreSQL, beside the same on SQLite."""
import itertools
import statistics
import threading

import loads
from failure import Failure
from gauges import medians

# Requests under way at once: what waits together goes into one transaction.
WIDTHS = (8, 64, 512)
# Of the rows that have one width.
WIDTH = 64
# Keys in the memory of a gateway that has to look up most.
CACHED = 1_000


class Slices:
    """The signed requests, in slices that are sent once each and in their order."""

    def __init__(self, file, size):
        self.file, self.size, self.next = file, size, 0

    def take(self):
        first, self.next = self.next, self.next + self.size
        return {"REQUESTS": self.file, "FIRST": str(first), "COUNT": str(self.size)}

    def take_halves(self):
        """A slice in two, each with the requests of half the keys."""
        first, self.next = self.next, self.next + self.size
        halves = []
        for half in (0, 1):
            name = f"{self.file}.{half}"
            with open(self.file) as lines, open(name, "w") as out:
                out.writelines(itertools.islice(lines, first + half, first + self.size, 2))
            count = str(self.size // 2)
            halves.append({"REQUESTS": name, "FIRST": "0", "COUNT": count})
        return halves


class Fleet:
    """Gateways on a database, and one on SQLite, which take turns."""

    def __init__(self, stand, database, slices, seconds):
        self.database, self.slices, self.seconds = database, slices, seconds
        keys = stand.path("keys.jsonl")
        self.script = stand.path("signed.lua")
        with open(self.script, "w") as file:
            file.write(loads.SIGNED)
        self.alone = stand.start("portcullis", keys)
        self.first = stand.start_on(database.address, "first", keys)
        self.second = stand.start_on(database.address, "second")

    def sample(self):
        """One round of each row: its name, and what was measured."""
        rows = {}
        for width in WIDTHS:
            part = self.slices.take()
            rows[f"sqlite {width}"] = self._send(self.alone, width, part)
            rows[f"postgresql {width}"] = self._counted(
                lambda: [self._send(self.first, width, part)]
            )
        self.database.set("synchronous_commit", "off")
        rows["unsynchronised"] = self._counted(
            lambda: [self._send(self.first, WIDTH, self.slices.take())]
        )
        self.database.set("synchronous_commit", "on")
        rows["two gateways"] = self._counted(self._send_to_both)
        return rows

    def _send(self, gateway, width, part):
        pid, port = gateway
        return loads.requests(pid, port, self.seconds, width, self.script, part)

    def _send_to_both(self):
        """At half the width each. All figures but the rate are means of the two."""
        done, faults = [], []

        def send(gateway, half):
            try:
                done.append(self._send(gateway, WIDTH // 2, half))
            except Failure as failure:
                faults.append(failure)

        halves = self.slices.take_halves()
        senders = [
            threading.Thread(target=send, args=pair)
            for pair in zip((self.first, self.second), halves)
        ]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        if faults:
            raise faults[0]
        return done

    def _counted(self, load):
        """What the gateways and the database did, for each request."""
        before = self.database.gauges()
        samples = load()
        after = self.database.gauges()
        rate = sum(sample["rate"] for sample in samples)
        count = rate * self.seconds
        return {
            "cpu_us": statistics.mean(sample["cpu_us"] for sample in samples),
            "p99_ms": max(sample["p99_ms"] for sample in samples),
            "rate": rate,
            "database_us": (after["cpu"] - before["cpu"]) * 1e6 / count,
            "batch": count / max(1, after["commits"] - before["commits"]),
            "wal": (after["wal"] - before["wal"]) / count,
        }


def medians_by_row(rounds):
    return {row: medians([one[row] for one in rounds]) for row in rounds[0]}


def table(results):
    """Rows of text, the head first."""
    rows = [[
        "store, requests at once", "gateway CPU", "to SQLite", "p99", "to SQLite", "requests/s",
        "database CPU", "uses/transaction", "WAL/use",
    ]]
    names = {
        "unsynchronised": f"PostgreSQL, {WIDTH}, synchronous_commit = off",
        "two gateways": f"PostgreSQL, two gateways, {WIDTH // 2} each",
    }
    for width in WIDTHS:
        names[f"sqlite {width}"] = f"SQLite, {width}"
        names[f"postgresql {width}"] = f"PostgreSQL, {width}"
    for row, figures in results.items():
        width = row.split()[1] if row.split()[0] in ("sqlite", "postgresql") else WIDTH
        beside = results[f"sqlite {width}"]
        own = [f"{figures['cpu_us']:.1f} µs", "", f"{figures['p99_ms']:.1f} ms", ""]
        shared = ["", "", ""]
        if "batch" in figures:
            own[1] = f"{figures['cpu_us'] / beside['cpu_us']:.2f}"
            own[3] = f"{figures['p99_ms'] / beside['p99_ms']:.2f}"
            shared = [
                f"{figures['database_us']:.1f} µs", f"{figures['batch']:.1f}",
                f"{figures['wal']:.0f} B",
            ]
        rows.append([names[row], *own, f"{figures['rate']:,.0f}", *shared])
    return rows
