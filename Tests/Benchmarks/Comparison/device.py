"""A key that signs as an iPhone's does, without a library: Python has no P-256 of its own.

The key and the numbers of its signatures are derived from texts, so that each run signs alike. It
is no key for anything but a measurement.
"""
import base64
import hashlib
import hmac
import json

APP = "TEAM123456.com.example.bench"

# The curve P-256 (SEC 2, §2.4.2): y² = x³ - 3x + b over the integers modulo P; G has the order N.
P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)


def sum_of(one, other):
    """The sum of two points; `None` is the neutral one."""
    if one is None or other is None:
        return one or other
    if one[0] == other[0]:
        if (one[1] + other[1]) % P == 0:
            return None
        slope = (3 * one[0] * one[0] - 3) * pow(2 * one[1], -1, P)
    else:
        slope = (other[1] - one[1]) * pow(other[0] - one[0], -1, P)
    x = (slope * slope - one[0] - other[0]) % P
    return x, (slope * (one[0] - x) - one[1]) % P


def multiple(scalar):
    """The generator, added `scalar` times."""
    result, addend = None, G
    while scalar:
        if scalar & 1:
            result = sum_of(result, addend)
        addend, scalar = sum_of(addend, addend), scalar >> 1
    return result


def number_from(text):
    """A number of 1…N-1 that a text always gives."""
    return int.from_bytes(hashlib.sha512(text).digest(), "big") % (N - 1) + 1


def encoded(data):
    return base64.b64encode(data).decode()


class Device:
    """One key, its counter and its session."""

    def __init__(self):
        self.secret, self.counter = number_from(b"key of the measurement"), 0
        x, y = multiple(self.secret)
        self.point = b"\x04" + x.to_bytes(32, "big") + y.to_bytes(32, "big")
        self.key_id = encoded(hashlib.sha256(self.point).digest())
        self.session, self.session_secret, self.sequence = None, b"", 0

    def opens(self, session, secret):
        """What the gateway has answered: the id, and the secret in base64."""
        self.session, self.session_secret = session, base64.b64decode(secret)

    def import_line(self):
        """The line for `portcullis keys import`."""
        return json.dumps({
            "key_id": self.key_id, "app_id": APP, "environment": "production",
            "public_key": encoded(self.point), "counter": self.counter,
        })

    def assertion_fields(self, method, target, challenge):
        """The fields of a request without content, signed by an assertion."""
        self.counter += 1
        # RP ID hash, flags, counter (WebAuthn §6.1).
        data = (
            hashlib.sha256(APP.encode()).digest() + b"\x40" + self.counter.to_bytes(4, "big")
        )
        lines = client_data(method, target, challenge)
        signature = self._signature(hashlib.sha256(data + hashlib.sha256(lines).digest()).digest())
        # The map {"signature": bytes, "authenticatorData": bytes} in CBOR.
        assertion = (
            b"\xa2\x69signature\x58" + bytes([len(signature)]) + signature
            + b"\x71authenticatorData\x58" + bytes([len(data)]) + data
        )
        return {
            "App-Attest-Key-Id": self.key_id,
            "App-Attest-Assertion": encoded(assertion),
            "App-Attest-Challenge": challenge,
        }

    def session_fields(self, method, target):
        """The fields of a request without content, signed by the session."""
        self.sequence += 1
        lines = client_data(method, target, str(self.sequence))
        code = hmac.digest(self.session_secret, lines, "sha256")
        return {
            "App-Attest-Session": self.session,
            "App-Attest-Sequence": str(self.sequence),
            "App-Attest-Signature": encoded(code),
        }

    def _signature(self, message):
        """ECDSA with SHA-256 (SEC 1, §4.1.3), in DER."""
        digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
        nonce = number_from(b"nonce %d" % self.counter + message)
        r = multiple(nonce)[0] % N
        s = pow(nonce, -1, N) * (digest + r * self.secret) % N
        body = der_integer(r) + der_integer(s)
        return b"\x30" + bytes([len(body)]) + body


def der_integer(number):
    data = number.to_bytes(number.bit_length() // 8 + 1, "big")
    return b"\x02" + bytes([len(data)]) + data


def client_data(method, target, last):
    """The lines that are signed, for a request without content."""
    digest = encoded(hashlib.sha256(b"").digest())
    return f"portcullis-request-v1\n{method}\n{target}\nsha-256=:{digest}:\n{last}\n".encode()
