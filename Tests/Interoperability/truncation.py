"""Which servers run the application on a request that is cut short, asked without a gateway."""
import concurrent.futures

from attacks.bodies import deliver
from attacks.genuine import FORM
from client import chunk, head

ENDINGS = ["closed", "half-closed", "reset"]
CONTENT = "to=mallory&amount=1000000&t={token}&x="


def send(stand, token, chunked, ending):
    content = CONTENT.format(token=token).encode()
    framing = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", len(content))
    first = chunk(content) if chunked else content[:-1]
    with stand.direct() as client:
        client.connection.settimeout(4)
        client.send(head("POST", f"/open?t={token}", [("Host", "a"), FORM, framing]))
        deliver(client, first, ending)


def measure(stand):
    """What ran, by the framing and the ending: the form that the application saw, or None."""
    sent = {}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for chunked in [False, True]:
            for ending in ENDINGS:
                token = stand.token()
                sent[chunked, ending] = token
                pool.submit(send, stand, token, chunked, ending)
    stand.settle()
    records = stand.records()
    found = {}
    for how, token in sent.items():
        lines = [line for line in records.get(token, []) if line["stage"] == "executed"]
        found[how] = lines[0] if lines else None
    return found
