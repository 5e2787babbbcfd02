"""All attacks on one backend, and what came of each."""
import concurrent.futures

import judge
from attacks.attack import NotApplicable

# So many attacks at once on one backend.
SIDE_BY_SIDE = 8
UNREAD = (
    "answers POST without reading its content and keeps the connection, so that it takes the"
    " content for the next request, behind whatever proxy"
)
# What is the server's own fault, by backend and attack.
KNOWN = {
    ("http.server", "unread content: POST that is not read"): UNREAD,
}


class Result:
    """`outcome` is held, not applicable, runs (a streamed rule's server ran it), or WRONG."""

    def __init__(self, attack, token):
        self.attack = attack
        self.token = token
        self.why = None
        self.faults = []
        # The longest content that the application executed.
        self.length = 0
        self.streamed = False
        # Why this is the server's own fault, which no gateway can mend.
        self.known = None

    @property
    def outcome(self):
        if self.why:
            return "n/a"
        if self.faults and self.known:
            return "known"
        if self.faults:
            return "runs" if self.streamed else "WRONG"
        return "held"


def send(stand, result):
    try:
        fault = result.attack.run(stand, result.token)
        if fault:
            result.faults.append(fault)
    except NotApplicable as why:
        result.why = str(why)
    except Exception as error:
        result.faults.append(f"the attack itself failed: {type(error).__name__}: {error}")


def run(stand, attacks):
    """Sends the attacks side by side, waits, and judges what the application wrote."""
    results = [Result(attack, stand.token()) for attack in attacks]
    for result in results:
        attack = result.attack
        result.known = KNOWN.get((stand.backend.name, f"{attack.group}: {attack.name}"))
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(lambda result: send(stand, result),
                      [result for result in results if not result.attack.alone]))
    for result in results:
        if result.attack.alone:
            send(stand, result)
    stand.settle()
    records = stand.records()
    for result in results:
        for token in [result.token, *stand.kin.get(result.token, [])]:
            weigh(result, records.get(token, []), stand.promises.get(token))
    return results


def weigh(result, lines, promise):
    """Adds what the records of one token say."""
    ran = judge.ran(lines)
    result.length = max([result.length, *(line["length"] for line in ran)])
    found = list(judge.faults(lines, promise))
    result.streamed |= bool(found and promise and promise.streamed)
    result.faults += list(dict.fromkeys(found))
    if result.attack.runs and not result.why and not ran:
        result.faults.append("the application did not execute it")
