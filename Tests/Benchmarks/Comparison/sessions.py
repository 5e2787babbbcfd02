"""Requests that are signed with sessions, written beforehand so that wrk only has to send them."""
import base64
import hashlib
import hmac
import http.client
import json
import subprocess

from failure import Failure

ENDPOINTS = "/.well-known/app-attest"
TARGET = "/session"
DIGEST = base64.b64encode(hashlib.sha256(b"").digest()).decode()

# Sends each request once, as SIGNED of loads.py.
SCRIPT = """
local heads, number = {}, 0
function init()
  for text in io.lines(os.getenv("REQUESTS")) do
    local id, sequence, signature = text:match("^(%S+)\\t(%S+)\\t(%S+)")
    heads[#heads + 1] = "GET /session HTTP/1.1\\r\\nHost: bench.test\\r\\nApp-Attest-Session: " .. id
      .. "\\r\\nApp-Attest-Sequence: " .. sequence .. "\\r\\nApp-Attest-Signature: " .. signature
      .. "\\r\\n\\r\\n"
  end
end
function request()
  number = number % #heads + 1
  return heads[number]
end
"""


class Sessions:
    """Sessions that are open at one gateway, each of a key of its own."""

    def __init__(self, port, signer, count):
        """signer: the program that signs for the n-th key: signer, n, challenge."""
        self.open = [self._open(port, signer, number) for number in range(count)]
        self.next = 1

    @staticmethod
    def _open(port, signer, number):
        challenge = post(port, "/challenges", {})["challenges"][0]
        command = [*signer, str(number), "POST", f"{ENDPOINTS}/sessions", challenge]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failure(done.stderr, " ".join(command))
        key, assertion = done.stdout.split()
        fields = {
            "App-Attest-Key-Id": key,
            "App-Attest-Assertion": assertion,
            "App-Attest-Challenge": challenge,
        }
        answer = post(port, "/sessions", fields)
        return answer["session"], base64.b64decode(answer["secret"])

    def write(self, file, count):
        """Signs at least so many requests, in turns and with growing numbers."""
        rounds = -(-count // len(self.open))
        with open(file, "w") as out:
            for number in range(self.next, self.next + rounds):
                lines = f"portcullis-request-v1\nGET\n{TARGET}\nsha-256=:{DIGEST}:\n{number}\n"
                for session, secret in self.open:
                    code = hmac.digest(secret, lines.encode(), "sha256")
                    out.write(f"{session}\t{number}\t{base64.b64encode(code).decode()}\n")
        self.next += rounds


def post(port, path, fields):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", ENDPOINTS + path, headers={"Content-Length": "0", **fields})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status not in (200, 201):
            raise Failure(f"{path}: {answer.status} {content[:300]!r}", "see the answer above")
        return json.loads(content)
    finally:
        connection.close()
