"""Shows what was measured: as aligned text, or as Markdown for the README."""

import calls
import fleet
import phones
import sizing
import verdicts
from edge import ROWS

NAMES = {
    "portcullis": "Portcullis", "nginx": "nginx", "haproxy": "HAProxy", "openssl": "OpenSSL",
    "swift": "Swift",
}


class Table:
    def __init__(self, results, systems, is_markdown):
        self.results, self.systems, self.is_markdown = results, systems, is_markdown

    @property
    def text(self):
        heads = ["what"] + [NAMES[system] for system in self.systems] + ["Portcullis to nginx"]
        steps = [
            [f"{step['group']}: {step['name']}", time(step["ns"]), number(step["allocations"])]
            for step in self.results["steps"]
        ]
        for part in (sizing, calls, phones, verdicts, fleet):
            if part.__name__ in self.results:
                rows = part.table(self.results[part.__name__])
                return "\n\n".join([self._machine(), self._rows(rows)])
        if "session" not in self.results:
            return "\n\n".join([self._machine(), self._rows([heads] + self._edge())])
        if "pass" not in self.results:
            rows = [["what", "Portcullis", ""]] + self._sessions([])
            return "\n\n".join([self._machine(), self._rows(rows)])
        parts = [
            self._machine(),
            self._rows([heads] + self._gateways()),
            self._rows([["step of a request", "CPU time", "allocations"]] + steps),
        ]
        return "\n\n".join(parts)

    def _machine(self):
        facts = self.results["machine"]
        versions = [
            f"{NAMES.get(name, name)} {facts[name]}"
            for name in ("nginx", "haproxy", "openssl", "swift") if facts[name]
        ]
        return (
            f"{facts['processor']}, {facts['cores']} cores, {facts['system']}, "
            f"Linux {facts['kernel']}; {', '.join(versions)}; commit {facts['commit']}, "
            f"load before {facts['load']}. Medians of {facts['rounds']} rounds of {self._round()}."
        )

    def _round(self):
        if "calls" in self.results:
            return f"{calls.COUNT:,} calls"
        facts = self.results["machine"]
        return f"{facts['seconds']} s, {facts['connections']} connections"

    def _gateways(self):
        verified = self.results["verified"]
        bare = f"{verified['bare_us']:.1f} µs"
        blank = [""] * (len(self.systems) - 1)
        ratio = f"{verified['cpu_us'] / verified['bare_us']:.2f} × the bare verification"
        return [
            self._compared("pass-through, CPU per request", "pass", "cpu_us", "{:.1f} µs"),
            self._compared("pass-through, p99", "pass", "p99_ms", "{:.1f} ms"),
            self._compared("pass-through, requests a second", "pass", "rate", "{:,.0f}"),
            self._compared("memory of an idle connection", "idle", "kib", "{:.2f} KiB"),
            self._compared("upload, digest verified by Portcullis", "upload", "mib_s",
                           "{:.0f} MiB/s"),
            self._compared("upload, CPU per GiB", "upload", "cpu_s_gib", "{:.2f} s"),
            self._compared("upload, memory it grew by", "upload", "growth_mib", "{:.1f} MiB"),
            ["verified, CPU per request", f"{verified['cpu_us']:.1f} µs", *blank, ratio],
            ["verified, p99", f"{verified['p99_ms']:.1f} ms", *blank, ""],
            ["verified, requests a second", f"{verified['rate']:,.0f}", *blank, ""],
            ["one P-256 verification by `openssl speed`", bare, *blank, ""],
            *self._sessions(blank),
            *self._edge(),
        ]

    def _edge(self):
        rows = [self._compared(what, "edge", name, form) for name, what, form in ROWS]
        verified = self.results["protocols"]
        blank = [""] * (len(self.systems) - 1)
        ratio = f"{verified['http2'] / verified['http1']:.2f} × HTTP/1.1"
        cost = f"{verified['http2']:.1f} µs"
        return rows + [["verified over HTTP/2, CPU per request", cost, *blank, ratio]]

    def _sessions(self, blank):
        session = self.results["session"]
        ratio = f"{session['ratio']:.2f} × pass-through"
        beside = f"{session['pass_cpu_us']:.1f} µs"
        return [
            ["verified by session, CPU per request", f"{session['cpu_us']:.1f} µs", *blank, ratio],
            ["pass-through in the same rounds", beside, *blank, ""],
            ["verified by session, requests a second", f"{session['rate']:,.0f}", *blank, ""],
        ]

    def _compared(self, what, part, name, form):
        values = [self.results[part].get(system, {}).get(name) for system in self.systems]
        shown = ["" if value is None else form.format(value) for value in values]
        # Where both are next to nothing, their ratio says nothing.
        ratio = f"{values[0] / values[1]:.2f}" if values[0] > 0.05 and values[1] > 0.05 else ""
        return [what, *shown, ratio]

    def _rows(self, rows):
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        if self.is_markdown:
            lines = ["| " + " | ".join(row) + " |" for row in rows]
            lines.insert(1, "|" + "---|" * len(widths))
            return "\n".join(lines)
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
            for row in rows
        )


def time(nanoseconds):
    """With three digits that count."""
    return f"{nanoseconds:.0f} ns" if nanoseconds < 1_000 else f"{nanoseconds / 1_000:.1f} µs"


def number(value):
    return f"{value:.1f}".removesuffix(".0")
