"""Signed fields removed or replaced after the signature was checked, and verdicts forged."""
from attacks.attack import Attack
from attacks.genuine import FORM, order
from client import chunk, head

# What may stand between the words of a name (RFC 9110 §5.6.2); some CGI folds each to "_".
MARKS = "_.~!#$%&'*+^`|"
VERDICTS = [
    "App-Attest-Verdict", "app-attest-verdict", "APP-ATTEST-VERDICT", "App-Attest_Verdict",
    "App_Attest-Verdict", "App-Attest-Verdict ", " App-Attest-Verdict", "App-Attest-Verdict\t",
    "HTTP_APP_ATTEST_VERDICT", "App--Attest-Verdict",
]


def signed_with(extra, name="idempotency-key", values=("k-1",), signed="k-1"):
    """A genuine request with more fields: it may be refused, or run as it was signed."""
    def run(stand, token):
        target, content = f"/pay?t={token}", order(token)
        fields = [("idempotency-key", signed)]
        stand.promise(token, "POST", target, content, fields)
        sent = [(name, value) for value in values]
        stand.ask(
            "POST", target, [FORM, *sent, *extra, *stand.proof("POST", target, content, fields)],
            content,
        )

    return run


def unsigned_field(extra):
    """The rule's field is signed as absent."""
    def run(stand, token):
        target, content = f"/pay?t={token}", order(token)
        stand.promise(token, "POST", target, content, [("idempotency-key", None)])
        stand.ask("POST", target, [FORM, *extra, *stand.proof("POST", target, content)], content)

    return run


def forged(name, value="pass"):
    def run(stand, token):
        for path in ["/open", "/off/x"]:
            stand.ask("GET", f"{path}?t={token}", [(name, value), ("App-Attest-Reason", "none")])

    return run


def forged_in_trailers(stand, token):
    with stand.connect() as client:
        client.send(
            f"POST /open?t={token} HTTP/1.1\r\nHost: interop.test\r\nTransfer-Encoding: chunked\r\n"
            "Trailer: App-Attest-Verdict\r\n\r\n1\r\nx\r\n0\r\n"
            "App-Attest-Verdict: pass\r\nApp_Attest_Verdict: pass\r\n\r\n".encode()
        )
        client.answer("POST")


def forged_identity(name):
    """A client's word about who it is must not reach an application as the gateway's."""
    def run(stand, token):
        spelt = [name, name.replace("-", "_"), name.replace("-", "."), name.replace("-", "~")]
        for path in ["/open", "/files/x", "/off/x"]:
            for word in spelt:
                stand.ask("GET", f"{path}?t={token}", [(word, "forged")])
        for record in stand.records_of(token):
            for field, value in record.get("fields", {}).items():
                if "forged" in str(value):
                    return f"the application saw {field}: {value}"
        return None

    return run


def in_trailers(path):
    """Trailers that name a signed field and our own: they are no part of what was signed."""
    def run(stand, token):
        target, content = f"{path}?t={token}", order(token)
        fields = [("idempotency-key", "k-1")]
        stand.promise(token, "POST", target, content, fields, path == "/upload")
        proof = stand.proof("POST", target, content, fields)
        with stand.connect() as client:
            client.send(head("POST", target, [
                ("Host", "a"), FORM, *fields, *proof, ("Transfer-Encoding", "chunked"),
                ("Trailer", "Idempotency-Key"),
            ]) + chunk(content) + b"0\r\nIdempotency-Key: evil\r\nIdempotency_Key: evil\r\n"
                b"Content-Length: 1\r\nApp-Attest-Key-Id: evil\r\n\r\n")
            client.answer("POST")

    return run


def nominated_verdict(nominated):
    """Our own fields must reach the application though the client nominates them."""
    def run(stand, token):
        target = f"/open?t={token}"
        stand.ask("GET", target, [("App-Attest-Verdict", "pass"), ("Connection", nominated)])
        lines = [record for record in stand.records_of(token)
                 if record["stage"] == "executed"]
        if any("app-attest-verdict" not in record["fields"] for record in lines):
            return "the application saw no verdict"
        return None

    return run


def split(stand, token):
    return signed_with([], values=("abc", "def"), signed="abc, def")(stand, token)


# What some origin takes for the client's address, the host, the target or the method.
OVERRIDES = [
    "X-Original-URL", "X-Rewrite-URL", "X-Original-URI", "X-WAWS-Unencoded-URL", "X-Script-Name",
    "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-Method",
    "X-HTTP-Host-Override", "X-Host", "X-Original-Host", "Disguised-Host",
    "X-Envoy-Original-Path", "X-Envoy-External-Address", "X-Envoy-Internal",
    "X-Forwarded", "X-Forwarded-Host",
    "X-Forwarded-Server", "X-Forwarded-Prefix", "X-Forwarded-Path", "X-Forwarded-User",
    "X-Forwarded-Client-Cert", "Forwarded-For", "X-Original-Forwarded-For",
    "X-Vercel-Forwarded-For", "CloudFront-Forwarded-Proto",
    "X-Real-IP", "X-Client-IP", "Client-IP", "X-Cluster-Client-IP", "X-Originating-IP",
    "X-Remote-IP", "X-Remote-Addr", "True-Client-IP", "CF-Connecting-IP", "CF-Connecting-IPv6",
    "DO-Connecting-IP", "Fastly-Client-IP", "Fly-Client-IP", "Incap-Client-IP",
    "X-Sucuri-ClientIP", "Ali-CDN-Real-IP", "Cdn-Src-Ip", "Proxy-Client-IP",
    "WL-Proxy-Client-IP", "X-Azure-ClientIP", "X-Azure-SocketIP", "X-ProxyUser-Ip",
    "X-Appengine-User-IP", "X-Appengine-Remote-Addr",
    "Front-End-Https", "X-ARR-SSL", "X-Scheme", "X-Url-Scheme", "WL-Proxy-SSL",
    "X-MS-Client-Principal-Name", "X-ARR-ClientCert", "WL-Proxy-Client-Cert",
    "X-SSL-Client-Verify", "X-SSL-Client-Cert", "X-Client-Cert", "SSL-Client-Verify",
    "X-Sendfile-Type", "X-Accel-Mapping", "X-Middleware-Subrequest", "Proxy",
]


def overriding(name):
    """A field by which an origin would take the request for another must not come through."""
    def run(stand, token):
        spelt = [name, name.replace("-", "_"), name.replace("-", "."), name.upper()]
        stand.ask("GET", f"/open?t={token}", [(word, "198.51.100.66") for word in spelt])
        for record in stand.records_of(token):
            for field, value in record.get("fields", {}).items():
                if field.replace("_", "-").replace(".", "-").lower() == name.lower() \
                        and "198.51.100.66" in str(value):
                    return f"the application saw {field}: {value}"
        return None

    return run


def content_twin(name, value):
    return signed_with([(name, value)])


def removed(name):
    """The content's own field, nominated."""
    return signed_with([("Connection", name)])


def rows():
    for value in ["idempotency-key", "Idempotency-Key", "close, idempotency-key",
                  "keep-alive,IDEMPOTENCY-KEY", "idempotency-key, idempotency-key"]:
        yield "nomination", f"Connection: {value}", signed_with([("Connection", value)])
    for value in ["content-type", "content-length", "host", "app-attest-verdict",
                  "content-digest", "app-attest-key-id", "transfer-encoding"]:
        yield "nomination", f"Connection: {value}, signed", removed(value)
        yield "nomination", f"Connection: {value}, not signed", nominated_verdict(value)
    for mark in MARKS:
        twin = f"Idempotency{mark}Key"
        yield "twins", twin, signed_with([(twin, "evil")])
        yield "twins", f"{twin} where none is signed", unsigned_field([(twin, "evil")])
        yield "twins", f"{twin} in front", unsigned_field([(twin, "evil"), (twin, "evil")])
        yield "forged verdict", f"App{mark}Attest{mark}Verdict", forged(
            f"App{mark}Attest{mark}Verdict")
    yield "twins", "a second line", signed_with([("Idempotency-Key", "evil")])
    yield "twins", "an empty second line", signed_with([("Idempotency-Key", "")])
    yield "twins", "a list as two lines", split
    yield "twins", "another case", signed_with([], name="IDEMPOTENCY-KEY")
    for name, value in [("Content_Length", "4"), ("Content.Length", "4"), ("Content-Length", "4"),
                        ("Transfer_Encoding", "chunked"), ("Transfer.Encoding", "chunked"),
                        ("Content_Type", "text/plain"), ("Content.Type", "text/plain"),
                        ("Content-Type", "text/plain"), ("X-HTTP-Method-Override", "DELETE"),
                        ("X-Original-URL", "/v1/orders"), ("X-Rewrite-URL", "/v1/orders"),
                        ("X-Forwarded-Prefix", "/v1"), ("Script-Name", "/v1"),
                        ("Path-Info", "/v1/orders"), ("Request_Method", "DELETE"),
                        ("X-Forwarded-Path", "/v1/orders"), ("X-HTTP-Method", "DELETE"),
                        ("X-Method-Override", "DELETE"), ("Proxy", "x"), ("Upgrade", "h2c")]:
        yield "twins", f"{name}: {value}", content_twin(name, value)
    for name in OVERRIDES:
        yield "client fields", name, overriding(name)
    for name in VERDICTS:
        yield "forged verdict", repr(name), forged(name)
    yield "forged verdict", "in trailers", forged_in_trailers
    for name in ["App-Attest-Key-Id", "App-Attest-App-Id", "App-Attest-Reason",
                 "App-Attest-Environment", "App-Attest-Verdict", "App-Attest-Risk",
                 "App-Attest-Proof", "App-Attest-Context", "App-Attest-Device-Bits",
                 "App-Attest-Device-Token", "App-Attest-Integrity", "App-Attest-Integrity-Token"]:
        yield "forged verdict", f"{name}: forged", forged_identity(name)
    yield "twins", "in trailers", in_trailers("/pay")


ATTACKS = [Attack(group, name, run) for group, name, run in rows()]
