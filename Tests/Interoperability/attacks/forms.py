"""Proofs of another form, another app, or another time."""
import threading

from attacks.attack import Attack
from attacks.genuine import FORM, KEY, order
from client import head
from device import request_lines


def lines_as_content(stand, token):
    """What is signed for one request is sent as the content of another rule."""
    content = request_lines("POST", f"/pay?t={token}", order(token), stand.challenge())
    stand.ask("POST", "/checkin", stand.proof("POST", "/checkin", content, signed=content), content)


def challenge_as_content(stand, token):
    """The client data of `sign: challenge`, which says nothing about any content."""
    challenge = stand.challenge()
    proof = stand.proof("POST", "/checkin", challenge.encode(), signed=challenge.encode())
    stand.ask("POST", "/checkin?t=" + token, proof, challenge.encode())


def other_rule(stand, token):
    """A proof for one target at another."""
    stand.ask("POST", f"/v1/orders?t={token}",
              [FORM, *stand.proof("POST", f"/upload?t={token}", order(token))], order(token))


def other_method(stand, token):
    stand.ask("PUT", f"/v1/orders?t={token}",
              [FORM, *stand.proof("POST", f"/v1/orders?t={token}", order(token))], order(token))


def other_query(stand, token):
    stand.ask("POST", f"/v1/orders?t={token}&to=mallory",
              [FORM, *stand.proof("POST", f"/v1/orders?t={token}", order(token))], order(token))


def test_app(stand, token):
    """A key that only tests should have, at a rule that names no app."""
    target = f"/v1/orders?t={token}"
    proof = stand.proof("POST", target, order(token), device=stand.test_device)
    stand.ask("POST", target, [FORM, *proof], order(token))


def replayed(stand, token):
    """The same octets twelve times at once: one may run."""
    target, content = f"/pay?t={token}", order(token)
    stand.promise(token, "POST", target, content, KEY)
    whole = head("POST", target, [
        ("Host", "interop.test"), FORM, *KEY, ("Content-Length", len(content)),
        *stand.proof("POST", target, content, KEY),
    ]) + content

    def send():
        with stand.connect() as client:
            client.send(whole)
            client.answer("POST")

    threads = [threading.Thread(target=send) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def star(target, host="a"):
    """`OPTIONS http://a` is `OPTIONS *` to an origin (RFC 9112 §3.2.4), but "/" was signed."""
    def run(stand, token):
        proof = stand.proof("OPTIONS", "/")
        stand.promise(token, "OPTIONS", "/")
        stand.ask("OPTIONS", target, [("X-Token", token), *proof], host=host)

    return run


ATTACKS = [
    Attack("forms", "line form as content", lines_as_content),
    Attack("forms", "challenge as content", challenge_as_content),
    Attack("forms", "proof of another rule", other_rule),
    Attack("forms", "proof of another method", other_method),
    Attack("forms", "proof of another query", other_query),
    Attack("forms", "a test app's key", test_app),
    Attack("replay", "at once", replayed),
    Attack("path", "OPTIONS http://a", star("http://a")),
    Attack("path", "OPTIONS *", star("*")),
]
