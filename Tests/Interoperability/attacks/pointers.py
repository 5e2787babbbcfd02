"""A challenge in the content (`json_pointer`): it is read once the signature is known to be good, and is good once."""
import json

from attacks.attack import Attack
from attacks.genuine import expect_success

JSON = ("Content-Type", "application/json")
# The default limit of content that the gateway reads.
LIMIT = 64 << 10


def content(token, challenge, amount=1):
    return json.dumps({"t": token, "amount": amount, "auth": {"challenge": challenge}}).encode()


def ask(stand, token, sent, signed=None):
    """The answer to content, with a proof for this content or another one. The challenge is in no field."""
    proof = stand.proof("POST", "/trial", sent, signed=sent if signed is None else signed)
    fields = [field for field in proof if field[0] != "App-Attest-Challenge"]
    return stand.ask("POST", f"/trial?t={token}", [JSON, *fields], sent, host="pointed.interop.test")


def refused(answer, status, reason):
    said = answer and (answer.status, answer.fields.get("app-attest-error", "").split(";")[0])
    return None if said == (status, reason) else f"got {said}, not {status} {reason}"


def genuine(stand, token):
    sent = content(token, stand.challenge())
    stand.promise(token, "POST", f"/trial?t={token}", sent)
    return expect_success(ask(stand, token, sent))


def again(stand, token):
    """The challenge of a request that ran, in other content with a good signature of its own."""
    challenge = stand.challenge()
    sent = content(token, challenge)
    stand.promise(token, "POST", f"/trial?t={token}", sent)
    fault = expect_success(ask(stand, token, sent))
    return fault or refused(ask(stand, token, content(token, challenge, 2)), 401, "challenge-spent")


def unsigned(make):
    """Content that has no good signature is not read: whatever it is, the signature is what is wrong with it."""
    def run(stand, token):
        signed = content(token, stand.challenge())
        return refused(ask(stand, token, make(token, stand.challenge()), signed), 403, "signature-mismatch")

    return run


def signed(make, status, reason):
    def run(stand, token):
        return refused(ask(stand, token, make(token, stand.challenge())), status, reason)

    return run


def nested(*_):
    return b"[" * (LIMIT - 1)


def large(token, challenge):
    return content(token, challenge) + b" " * LIMIT


ATTACKS = [
    Attack("pointer", "a challenge in the content", genuine, runs=True),
    Attack("pointer", "the challenge again", again, runs=True),
    Attack("pointer", "changed content", unsigned(lambda token, challenge: content(token, challenge, 2))),
    Attack("pointer", "brackets that nobody has signed", unsigned(nested)),
    Attack("pointer", "no JSON, and not signed", unsigned(lambda *_: b"\xff" * 1000)),
    Attack("pointer", "no JSON, signed", signed(lambda *_: b"\xff" * 1000, 401, "challenge-missing")),
    Attack("pointer", "a made-up challenge", signed(lambda token, _: content(token, "A" * 56), 401, "challenge-unknown")),
    Attack("pointer", "no challenge", signed(lambda token, _: content(token, None), 401, "challenge-missing")),
    Attack("pointer", "more than the limit", signed(large, 413, "content-too-large")),
]
