"""A cookie that was verified, and others that an application may read in its place."""
import issuer
from attacks.attack import Attack, NotApplicable
from attacks.genuine import FORM, expect_success, order

# What an application reads in place of GOOD, wherever its server finds another cookie of the name.
LINES = [
    ["session =EVIL; session=GOOD"], ["session\t=EVIL; session=GOOD"],
    ["session\xa0=EVIL; session=GOOD"], ["session\xc2\xa0=EVIL; session=GOOD"],
    ["session\xe2\x80\x83=EVIL; session=GOOD"], ["session\xc2\x85=EVIL; session=GOOD"],
    ["\xc2\xa0session=EVIL; session=GOOD"], ["session=GOOD; \xa0session=EVIL"],
    ["session=GOOD; x=y session=EVIL"], ["session=GOOD;x=y\tsession=EVIL"],
    ["session=GOOD; x session=EVIL"], ["session=GOOD; session=EVIL"],
    ["session=EVIL; session=GOOD"], ["session=GOOD", "session=EVIL"],
    ["session=EVIL", "session=GOOD"], ["session=GOOD,session=EVIL"],
    ["session=EVIL, session=GOOD"], ["session=GOOD", "x=y, session=EVIL"],
    ["x=\"a; session=EVIL\"; session=GOOD"], ["x=\"; session=GOOD\"; session=EVIL"],
    ["x=\"a session=EVIL; session=GOOD"], ["session=\"EVIL\"; session=GOOD"],
    ["Session=EVIL; session=GOOD"], ["SESSION=EVIL; session=GOOD"],
    ["%73ession=EVIL; session=GOOD"], ["session%00=EVIL; session=GOOD"],
    ["%20session=EVIL; session=GOOD"], ["+session=EVIL; session=GOOD"],
    ["session[]=EVIL; session=GOOD"], ["session=GOOD; session[a]=EVIL"],
    ["session[=EVIL; session=GOOD"], ["(session=EVIL; session=GOOD"],
    ["session; session=GOOD"], ["session=GOOD; session"], ["session=; session=GOOD"],
    ["\"session\"=EVIL; session=GOOD"], ["$Version=1; session=EVIL; session=GOOD"],
    ["a=b", "session=GOOD"], ["session=GOOD", "a=b"],
    ["session=GOOD; $Path=/; session =EVIL"], ["=; session=EVIL; session=GOOD"],
]
# The same of a name that PHP makes of other names.
TWINS = [
    ["app.session=EVIL; app_session=GOOD"], ["app session=EVIL; app_session=GOOD"],
    ["app[session=EVIL; app_session=GOOD"], ["app_session=GOOD; app.session=EVIL"],
    ["app%5Fsession=EVIL; app_session=GOOD"], ["app+session=EVIL; app_session=GOOD"],
    ["APP_SESSION=EVIL; app_session=GOOD"],
]
# What no server reads as another cookie of the name.
PLAIN = [["session=GOOD"], ["a=b; session=GOOD; c=d"], ["xsession=EVIL; session=GOOD"],
         ["session2=EVIL;session=GOOD"]]


def field(name):
    """Where an application writes down which cookie it has read."""
    return f"cookie:{name}"


def fields(good, lines):
    return [("Cookie", line.replace("GOOD", good)) for line in lines]


def shown(lines, name="session", genuine=False):
    def run(stand, token):
        target, content, good = f"/trial?t={token}", order(token), issuer.token()
        stand.promise(token, "POST", target, content, [(field(name), good)])
        host = {"session": "page", "app_session": "pages"}[name]
        answer = stand.ask("POST", target, [FORM, *fields(good, lines)], content,
                           host=f"{host}.interop.test")
        if genuine and stand.backend.reads_cookies:
            return expect_success(answer)
        # Where it reads none, nothing can be said of what it runs.
        if not stand.backend.reads_cookies:
            raise NotApplicable("the application reads no cookies")
        return None

    return run


ATTACKS = [
    *(Attack("cookies", repr(lines), shown(lines, genuine=True), runs=True) for lines in PLAIN),
    Attack("cookies", "app_session", shown(["app_session=GOOD"], "app_session", True), runs=True),
    *(Attack("cookies", repr(lines), shown(lines)) for lines in LINES),
    *(Attack("cookies", repr(lines), shown(lines, "app_session")) for lines in TWINS),
]
