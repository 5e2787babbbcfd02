"""The cases of the HTTP scenarios of which the gateway forwards requests."""
import base64
import json
import os

CASES = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "HTTPScenarios", "Cases"
)


def octets(case):
    def decode(value):
        return base64.b64decode(value or "")

    def plain(value):
        return (value or "").encode("latin-1")

    whole = decode(case.get("raw_b64")) + plain(case.get("raw"))
    for part in case.get("parts", []) + case.get("segments", []):
        whole += decode(part.get("b64")) + plain(part.get("raw"))
        repeated = decode(part.get("repeat_b64")) + plain(part.get("repeat"))
        whole += repeated * part.get("count", 0)
    return whole


def load_requests():
    """All requests: their names, their bytes, and how many requests of each are to be forwarded."""
    cases = []
    for name in ["cases.jsonl", "more-cases.jsonl"]:
        with open(os.path.join(CASES, name), encoding="utf-8") as lines:
            cases += [json.loads(line) for line in lines]
    return [
        (case["id"], octets(case), len(case["expect"].get("messages") or []))
        for case in cases if case["direction"] == "request"
    ]


def load_cases():
    return [case for case in load_requests() if case[2]]


def accepted_cases(recorder):
    """The cases of which the gateway forwards all that is to be forwarded, and what it forwards."""
    accepted = []
    for name, whole, count in load_cases():
        recorder.play(whole)
        # A request that was broken off may be logged late; it is none.
        lines = [line for line in recorder.news() if "fault" not in line]
        if lines and len(lines) != count:
            raise RuntimeError(f"{name}: the recorder saw {len(lines)} requests for {count}")
        if lines:
            accepted.append((name, whole, lines))
    return accepted
