"""One request in another spelling, without a proof: no handler that a rule names may run."""
from attacks.attack import Attack, NotApplicable
from attacks.genuine import FORM

METHODS = [("post", "/pay"), ("Post", "/pay"), ("pOST", "/upload"), ("get", "/profile"),
           ("HEAD", "/profile"), ("head", "/profile"), ("delete", "/item"), ("post", "/hosted")]
PATHS = [
    ("POST", "//x/pay"), ("POST", "//pay"), ("POST", "///pay"), ("POST", "/x//pay"),
    ("POST", "//x//pay"), ("POST", "//x:80/pay"), ("POST", "//u@x/pay"), ("POST", "//[::1]/pay"),
    ("POST", "///x/pay"), ("POST", "//x/upload"), ("POST", "//x/v1/orders"),
    ("POST", "/PAY"), ("POST", "/Pay"), ("POST", "/V1/Orders"), ("GET", "/V1/ORDERS"),
    ("POST", "//x/V1/orders"), ("POST", "/v1//orders"), ("POST", "/pay/"), ("POST", "/pay//"),
    ("POST", "/Pay/"), ("GET", "/profile/"), ("DELETE", "/ITEM"), ("DELETE", "/item/"),
    ("POST", "/v1/orders/"), ("POST", "/pay;a=b"), ("POST", "/pay;"), ("POST", "/;x/pay"),
    ("POST", "/v1;a/orders"), ("POST", "/%70ay"), ("POST", "/%50ay"), ("POST", "/pa%79"),
    ("POST", "/v1%2Forders"), ("POST", "/v1%2forders"), ("POST", "/%2Fpay"), ("POST", "/pay%2F"),
    ("POST", "/pay%00"), ("POST", "/pay%20"), ("POST", "/pay%0A"), ("POST", "/pay%0a"),
    ("POST", "/pay%09"), ("POST", "/pay."), ("POST", "/pay%2e"), ("POST", "/pay%3Fx"),
    ("POST", "/pay%23x"), ("POST", "/pay%3Bx"), ("POST", "/./pay"), ("POST", "/x/../pay"),
    ("POST", "/%2e/pay"), ("POST", "/x/%2e%2e/pay"), ("POST", "/.%2e/pay"), ("POST", "\\pay"),
    ("POST", "/\\pay"), ("POST", "/\\x/pay"), ("POST", "/v1\\orders"), ("POST", "/v1%5Corders"),
    ("POST", "pay"), ("POST", "?/pay"), ("POST", "/index.php/pay"), ("POST", "/app.cgi/pay"),
    ("POST", "/index.php/v1/orders"), ("POST", "/index.php//pay"), ("POST", "/v1/orders.json"),
    ("POST", "/index.php/v1/orders.json"), ("POST", "/public/index.php/pay"),
    ("POST", "/public/index.php/v1/orders"), ("POST", "/public//index.php/pay"),
    ("POST", "/public/index.php/v1/orders.json"), ("POST", "/public/pay.json"),
    ("POST", "/pay;/x"), ("POST", "/pay;a/b/c"), ("POST", "/v1/orders/;/x"),
    ("POST", "/v1/orders.x"), ("POST", "/place.order"), ("POST", "/place-order"),
    ("POST", "/place!order"), ("POST", "/place%2eorder"), ("POST", "/place%2Eorder/"),
    ("POST", "http://interop.test/pay"), ("POST", "http://interop.test//x/pay"),
    ("POST", "http://interop.test//pay"), ("POST", "HTTP://other.test/Pay"),
    ("POST", "http://interop.test/pay/"), ("POST", "/%ef%bc%8fpay"), ("POST", "/pay%C2%A0"),
    ("POST", "/x/..;/pay"), ("POST", "/;/pay"), ("POST", "/..;/pay"), ("POST", "/v1;a//orders"),
    ("POST", "//x/v1;a/orders"), ("POST", "/V1;a/Orders"), ("POST", "//x:99999/pay"),
    ("POST", "///x//pay"), ("POST", "////pay"), ("POST", "//%78/pay"), ("POST", "//x?/pay"),
    ("POST", "//x;a/pay"), ("POST", "/pay/;a"), ("POST", "/pay;a/"), ("POST", "/PAY;a=b/"),
    ("POST", "/pay/."), ("POST", "/pay/%2e"), ("POST", "/pay?x"), ("POST", "/pay??"),
    ("POST", "/pay&x"), ("POST", "/pay;x?y"), ("POST", "/%E2%84%AAay"), ("POST", "/pay%EF%BB%BF"),
    ("POST", "/\tpay"), ("POST", "/p\xe4y"), ("POST", "/pay#x"), ("POST", "/%"), ("POST", "//"),
    ("GET", "/files/private%2Fx"), ("GET", "/files/private%2fx"), ("GET", "/files%2Fprivate/x"),
    ("GET", "/files//private/x"), ("GET", "/files/%2Fprivate/x"), ("GET", "/files/./private/x"),
    ("GET", "/files/PRIVATE/x"), ("GET", "/Files/private/x"), ("GET", "/files;a/private/x"),
    ("GET", "/files/private;a/x"), ("GET", "/files/x/../private/x"),
    ("GET", "/files/x%2F..%2Fprivate/x"), ("GET", "/files/private%252Fx"),
    ("GET", "//x/files/private/x"), ("GET", "/files/%70rivate%2Fx"), ("GET", "/files/private//x"),
    ("GET", "/files/%2F%2Fprivate%2Fx"), ("GET", "/files/.%2Fprivate/x"),
    ("GET", "/files//private%2Fx"), ("GET", "//x/Files/private%2Fx"),
    ("GET", "/Files/PRIVATE%2Fx"), ("GET", "/files/private%2F%2Fx"),
]
SCRIPTS = ["/api/pay.php/x", "/api/pay.php/", "/api/pay.php//", "/api/pay.php/x/y", "/api/PAY.php",
           "/api/pay.PHP", "//api/pay.php", "/api//pay.php", "/api/pay.php%2Fx", "/api/pay.php;x",
           "/api/./pay.php", "/api/pay%2ephp", "/api/pay.php.", "/api/pay.php%20",
           "/api/pay.php%00", "/api/pay.php/%2e", "/api/pay.php/.php", "/API/pay.php",
           "/api/pay.php/x.css", "//x/api/pay.php", "/api/x/../pay.php", "/api/PAY.php/x",
           "//x/api/pay.php/y", "/api/pay.php;a/b", "/api/pay.php::$DATA",
           "/api/index.php", "/api/index.php/", "/api/index.php/x", "/api//index.php", "/api"]
HOSTS = ["API.Interop.Test", "api.interop.test.", "api.interop.test..", "api.interop.test:80",
         "api.interop.test:", "api.interop.test:443", "api.interop.test.:80", "other.test", "",
         "api%2Einterop.test", "interop.test, api.interop.test", "127.0.0.1", "[::1]",
         "[0:0:0:0:0:0:0:1]", "api.interop.test/x", "user@api.interop.test", "x api.interop.test"]


def unsigned(method, path, version="1.1", host="interop.test"):
    def run(stand, token):
        sign = "&" if "?" in path else "?"
        content = b"" if method.upper() in ("GET", "HEAD", "DELETE") else changed(token)
        target = path if "#" in path else f"{path}{sign}t={token}"
        stand.ask(method, target, [FORM] if content else [], content, version, host)

    return run


def changed(token):
    return f"to=mallory&amount=1000000&t={token}".encode()


def script(path):
    def run(stand, token):
        if not stand.backend.has_scripts:
            raise NotApplicable("has no scripts")
        return unsigned("POST", path)(stand, token)

    return run


def absolute(stand, token):
    """The target's host is another one than the field's."""
    for first, second in [("api.interop.test", "other.test"), ("other.test", "api.interop.test")]:
        stand.ask("POST", f"http://{first}/hosted?t={token}", [FORM], changed(token), host=second)


def twice(stand, token):
    fields = [FORM, ("Host", "other.test")]
    stand.ask("POST", f"/hosted?t={token}", fields, changed(token), host="api.interop.test")


ATTACKS = [
    *(Attack("method", f"{method} {path}", unsigned(method, path)) for method, path in METHODS),
    *(Attack("path", f"{method} {path!r}", unsigned(method, path)) for method, path in PATHS),
    *(Attack("script path", f"POST {path!r}", script(path)) for path in SCRIPTS),
    *(Attack("host", f"Host {host!r}", unsigned("POST", "/hosted", host=host)) for host in HOSTS),
    Attack("host", "HTTP/1.0 without Host", unsigned("POST", "/hosted", "1.0", None)),
    Attack("host", "absolute form with another Host", absolute),
    Attack("host", "two Host fields", twice),
]
