"""The tables: backends and groups of attacks; servers and requests that are cut short."""
from truncation import ENDINGS


class Examined:
    def __init__(self, backend, results, cut, seconds, failed=None):
        self.backend = backend
        self.results = results
        self.cut = cut
        self.seconds = seconds
        self.failed = failed


def cell(results):
    """One word for a group: how many held, and what else there is."""
    if not results:
        return "as above"
    counts = {}
    for result in results:
        counts[result.outcome] = counts.get(result.outcome, 0) + 1
    if counts.get("WRONG"):
        return f"WRONG {counts['WRONG']}/{len(results)}"
    if counts.get("runs"):
        return f"runs {counts['runs']}/{len(results)}"
    if counts.get("known"):
        return f"known {counts['known']}/{len(results)}"
    if counts.get("n/a") == len(results):
        return "n/a"
    return f"held {counts['held']}"


def ran_in(line):
    """What the application saw of a request that was cut short."""
    if line is None:
        return "no"
    return "runs" if line["length"] else "runs, empty"


def table(rows):
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for number, row in enumerate(rows):
        print("| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |")
        if number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")


def tell(examined, groups):
    groups = [group for group in groups
              if any(result.attack.group == group for one in examined for result in one.results)]
    print()
    table([["backend", "version", *groups, "seconds"]] + [
        [one.backend.name, one.backend.version(), *(
            cell([result for result in one.results if result.attack.group == group])
            if one.results else "NOT RUN" for group in groups
        ), f"{one.seconds:.0f}"]
        for one in examined
    ])
    print("\nWhich servers run the application on a request that is cut short: without a gateway,"
          "\nand through a rule with digest: streamed\n")
    table([["backend", *(f"{ending}, {framing}" for framing in ["length", "chunked"]
                         for ending in ENDINGS), "streamed, length", "streamed, chunked"]] + [
        [one.backend.name, *(
            ran_in(one.cut.get((chunked, ending))) for chunked in [False, True]
            for ending in ENDINGS
        ), streamed(one, "length"), streamed(one, "chunked")]
        for one in examined if one.cut
    ])
    print()
    return conclude(examined)


def streamed(one, framing):
    """What ran through a rule with `digest: streamed`, and of which endings."""
    ran = [result for result in one.results
           if result.outcome == "runs" and f", {framing}, " in result.attack.name]
    endings = dict.fromkeys(result.attack.name.split(", ")[2] for result in ran)
    empty = ", empty" if ran and not any(result.length for result in ran) else ""
    return f"runs{empty}: {', '.join(endings)}" if ran else "no"


def conclude(examined):
    wrong = {}
    for one in examined:
        if one.failed:
            wrong.setdefault("does not run", []).append((one.backend.name, one.failed))
        for why in sorted({result.why for result in one.results if result.why}):
            print(f"n/a: {one.backend.name}: {why}")
        for result in one.results:
            if result.outcome == "known":
                print(f"known: {one.backend.name}: {result.attack.group}: {result.attack.name}:"
                      f" {result.known}")
            if result.outcome == "WRONG":
                name = f"{result.attack.group}: {result.attack.name}"
                # The last fault says most: what was executed.
                wrong.setdefault(name, []).append((one.backend.name, result.faults[-1]))
    for name, found in wrong.items():
        print(f"WRONG: {name}: {found[0][0]}: {found[0][1]}")
        if len(found) > 1:
            print("       also " + "; ".join(backend for backend, _ in found[1:]))
    held = sum(result.outcome == "held" for one in examined for result in one.results)
    total = sum(len(found) for found in wrong.values())
    print(f"interoperability: {held} held, {total} WRONG, {len(examined)} backends")
    return 1 if wrong else 0
