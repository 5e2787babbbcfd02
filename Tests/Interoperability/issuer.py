"""An issuer of tokens: one key, whose public half the gateway reads from a file."""
import base64
import json
import time

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

NAME = "https://issuer.interop.test"
_KEY = ec.generate_private_key(ec.SECP256R1())


def _text(octets):
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def key_set():
    """RFC 7517."""
    numbers = _KEY.public_key().public_numbers()
    key = {"kty": "EC", "crv": "P-256", "alg": "ES256", "kid": "one",
           "x": _text(numbers.x.to_bytes(32, "big")), "y": _text(numbers.y.to_bytes(32, "big"))}
    return json.dumps({"keys": [key]})


def proof(place, file):
    """The settings of a proof whose token is in this place."""
    return (f"{{ kind: jwt, {place}, keys: {{ file: {file} }}, issuer: \"{NAME}\", audience: shop,"
            " algorithms: [ES256] }")


def token():
    """A good token (RFC 7515 §7.1)."""
    now = int(time.time())
    claims = {"iss": NAME, "aud": "shop", "iat": now - 1, "exp": now + 3600}
    signed = ".".join(_text(json.dumps(part).encode())
                      for part in [{"alg": "ES256", "kid": "one"}, claims])
    r, s = decode_dss_signature(_KEY.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return signed + "." + _text(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
