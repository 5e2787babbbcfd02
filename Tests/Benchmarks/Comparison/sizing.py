"""What a database of many keys takes: bytes, the gateway's start, uses, and keys not in memory."""
import time

import fleet
import loads
from gauges import medians, memory_kib

# Rows as gateways write them, with the hashes of numbers in the place of key ids, and one public key
# for all: it has to be a point of the curve.
FILL = """
INSERT INTO keys (key_id, public_key, app, environment, is_imported, counter, counter_window,
    enrolled_at, last_used_at)
SELECT sha256(n::text::bytea), (SELECT public_key FROM keys LIMIT 1),
    (SELECT min(id) FROM apps), 1, false,
    n % 100, 0, 1790000000, 1790000000
FROM generate_series({first}, {last}) n
"""
PIECE = 1_000_000

SIZES = """
SELECT pg_relation_size('keys'), pg_indexes_size('keys'), (SELECT count(*) FROM keys)
"""
# Uses of keys at random, as many in a transaction as gateways have in one under some load.
BATCH = 40
TRANSACTIONS = 2_500
SPREAD = """
DO $$ BEGIN FOR number IN 1..{transactions} LOOP
    UPDATE keys SET counter = counter + 1, last_used_at = last_used_at + 1
    WHERE key_id IN (
        SELECT sha256(n::text::bytea) FROM (
            SELECT 1 + floor(random() * {count})::bigint n FROM generate_series(1, {batch})
        ) AS drawn
    );
    COMMIT;
END LOOP; END $$
"""
LOG = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"
UPDATES = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'keys'"


def fill(database, count):
    """Adds so many keys that nobody has; gives the seconds that it took."""
    began = time.monotonic()
    for first in range(1, count + 1, PIECE):
        last = min(first + PIECE - 1, count)
        database.ask(FILL.format(first=first, last=last))
    database.ask("VACUUM ANALYZE keys")
    return time.monotonic() - began


class Sizing:
    """Gateways on a database with many keys: one that has all that it is asked for in memory, and
    one that has few keys there and looks up the others."""

    def __init__(self, stand, database, slices, seconds):
        self.stand, self.database, self.slices, self.seconds = stand, database, slices, seconds
        self.script = stand.path("signed.lua")
        with open(self.script, "w") as file:
            file.write(loads.SIGNED)

    def measure(self, count, rounds):
        stand, address = self.stand, self.database.address
        # Makes the tables, and stores the keys that sign.
        small = stand.start_on(address, "small", stand.path("keys.jsonl"))
        rows = [self._send(small) for _ in range(rounds)]
        results = {"before": medians(rows)}
        stand.end(small)
        results["fill_s"] = fill(self.database, count)
        table, indexes, keys = (int(word) for word in self.database.ask(SIZES).split("|"))
        results.update(keys=keys, table=table / keys, indexes=indexes / keys)

        began = time.monotonic()
        whole = stand.start_on(address, "whole")
        results["start_s"] = time.monotonic() - began
        results["memory_mib"] = memory_kib(whole[0]) / 1024
        cold = stand.start_on(address, "cold", keys_cached=fleet.CACHED)
        before = self._updates()
        samples = {"after": [], "cold": []}
        for _ in range(rounds):
            samples["after"].append(self._send(whole))
            samples["cold"].append(self._send(cold))
        for name, rounds_done in samples.items():
            results[name] = medians(rounds_done)
        after = self._updates()
        results["hot"] = (after[1] - before[1]) / max(1, after[0] - before[0])
        stand.end(whole)
        stand.end(cold)
        results["spread"] = self._spread(count)
        self.database.set("wal_compression", "lz4")
        results["compressed"] = self._spread(count)
        began = time.monotonic()
        self.database.ask("VACUUM keys")
        results["vacuum_s"] = time.monotonic() - began
        return results

    def _spread(self, count):
        """What uses write right behind a checkpoint, where each comes to a page of its own."""
        self.database.ask("CHECKPOINT")
        log, updates = int(self.database.ask(LOG)), self._updates()
        statement = SPREAD.format(transactions=TRANSACTIONS, batch=BATCH, count=count)
        self.database.ask(statement)
        log = int(self.database.ask(LOG)) - log
        updates = [after - before for after, before in zip(self._updates(), updates)]
        return {"wal": log / updates[0], "hot": updates[1] / updates[0]}

    def _updates(self):
        """Rows that were changed, and those of them whose indexes were not."""
        # What a connection counts is published when it has been idle for a second.
        time.sleep(1.2)
        return [int(word) for word in self.database.ask(UPDATES).split("|")]

    def _send(self, gateway):
        pid, port = gateway
        return loads.requests(
            pid, port, self.seconds, fleet.WIDTH, self.script, self.slices.take()
        )


def table(results):
    """Rows of text, the head first."""
    def use(name):
        row = results[name]
        return f"{row['rate']:,.0f} requests/s, CPU {row['cpu_us']:.1f} µs, p99 {row['p99_ms']:.1f} ms"

    bytes_a_key = results["table"] + results["indexes"]
    return [
        ["what", f"{results['keys']:,} keys"],
        ["table, bytes a key", f"{results['table']:.0f}"],
        ["its indexes, bytes a key", f"{results['indexes']:.0f}"],
        ["a hundred million keys without receipts", f"{bytes_a_key * 1e8 / 2**30:.0f} GiB"],
        ["making them", f"{results['fill_s']:.0f} s"],
        ["the gateway's start", f"{results['start_s']:.1f} s"],
        ["its memory then", f"{results['memory_mib']:.0f} MiB"],
        ["verified before, with 2,001 keys", use("before")],
        ["verified now, keys in memory", use("after")],
        ["verified now, most keys looked up", use("cold")],
        ["heap-only updates (HOT), of 2,001 keys", f"{results['hot']:.1%}"],
        ["the same, of keys at random", f"{results['spread']['hot']:.1%}"],
        ["log (WAL) a use, behind a checkpoint", f"{results['spread']['wal']:,.0f} bytes"],
        ["the same with wal_compression = lz4", f"{results['compressed']['wal']:,.0f} bytes"],
        ["VACUUM afterwards", f"{results['vacuum_s']:.1f} s"],
    ]
