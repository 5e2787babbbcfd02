"""A software device: keys, the lines of the client data, assertions (Sources/client/docs/wire.md)."""
import base64
import datetime
import hashlib
import json
import struct
import threading

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

APP = "INTEROP123.test.interop"
TEST_APP = "INTEROP123.test.interop.ci"


def base64_text(octets):
    return base64.b64encode(octets).decode()


def digest_member(content):
    """RFC 9530 `Content-Digest` with sha-256."""
    return f"sha-256=:{base64_text(hashlib.sha256(content).digest())}:"


def request_lines(method, target, content, challenge, fields=()):
    """The client data of the line form; a field's value is None where it is absent."""
    lines = ["portcullis-request-v1", method, target, digest_member(content), challenge]
    lines += [name if value is None else f"{name}: {value}" for name, value in fields]
    return "".join(line + "\n" for line in lines).encode("latin-1")


class Device:
    """One key, attested somewhere else, so that `keys import` brings it in."""

    def __init__(self, app=APP, environment="production", metric=None):
        self.app = app
        # Apple's risk metric; None while it is unknown.
        self.metric = metric
        self.environment = environment
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.point = self.key.public_key().public_bytes(
            Encoding.X962, PublicFormat.UncompressedPoint
        )
        self.key_id = base64_text(hashlib.sha256(self.point).digest())
        # As the gateway's log has it.
        self.log_name = hashlib.sha256(hashlib.sha256(self.point).digest()).hexdigest()[:12]
        self.counter = 0
        self.lock = threading.Lock()

    def import_line(self):
        line = {
            "key_id": self.key_id, "app_id": self.app, "environment": self.environment,
            "public_key": base64_text(self.point), "counter": 0,
        }
        if self.metric is not None:
            now = datetime.datetime.now(datetime.timezone.utc)
            line |= {"receipt": "AQ==", "risk_metric": self.metric,
                     "risk_metric_at": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
        return json.dumps(line) + "\n"

    def assertion(self, client_data):
        """CBOR {signature, authenticatorData}; what is signed is the nonce, 32 octets."""
        with self.lock:
            self.counter += 1
            counter = self.counter
        head = hashlib.sha256(self.app.encode()).digest() + b"\x40" + struct.pack(">I", counter)
        nonce = hashlib.sha256(head + hashlib.sha256(client_data).digest()).digest()
        signature = self.key.sign(nonce, ec.ECDSA(hashes.SHA256()))
        return base64_text(
            b"\xa2" + b"\x69signature" + b"\x58" + bytes([len(signature)]) + signature
            + b"\x71authenticatorData" + b"\x58" + bytes([len(head)]) + head
        )


def test_root():
    """A certificate for an authority of tests; no key here is attested by it."""
    key = ec.generate_private_key(ec.SECP384R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "interop test root")])
    now = datetime.datetime.now(datetime.timezone.utc)
    built = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name)
        .public_key(key.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    return built.sign(key, hashes.SHA384()).public_bytes(Encoding.PEM)
