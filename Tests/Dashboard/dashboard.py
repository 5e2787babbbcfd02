"""The dashboard in Chromium, before a gateway with traffic. See run."""

import argparse
import json
import pathlib
import re
import socket
import sys
import time

from playwright.sync_api import sync_playwright

from stand import MARKUP, Gateway

PATIENCE = 20_000
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
failures = []


def check(claim, holds, found=""):
    print(f"{'ok  ' if holds else 'FAIL'} {claim}" + (f": {found}" if found and not holds else ""), flush=True)
    if not holds:
        failures.append(claim)


class Visit:
    """A page that is open, and what the browser complained of."""

    def __init__(self, browser, gateway, screenshots, size=DESK, scheme="light"):
        self.gateway, self.screenshots, self.complaints = gateway, screenshots, []
        self.context = browser.new_context(viewport=size, color_scheme=scheme)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda message: self.note(message.type, message.text))
        self.page.on("pageerror", lambda error: self.note("pageerror", str(error)))
        self.page.add_init_script("""
            window.violations = [];
            document.addEventListener('securitypolicyviolation', (event) =>
                window.violations.push(event.violatedDirective + ' ' + event.blockedURI));""")

    def note(self, kind, text):
        if kind in ("error", "warning", "pageerror"):
            self.complaints.append(f"{kind}: {text}")

    def open(self, path="/dashboard", host="127.0.0.1"):
        answer = self.page.goto(f"http://{host}:{self.gateway.admin_port}{path}")
        self.page.wait_for_selector("#state:text-is('ready')")
        return answer

    def rounds(self, count=2):
        """Waits until the page has asked the gateway anew."""
        for _ in range(count):
            with self.page.expect_response(re.compile(r"/status$")):
                pass

    def text(self, selector):
        return self.page.inner_text(selector)

    def unlock(self, token):
        self.page.fill("#token", token)
        self.page.keyboard.press("Enter")

    def shoot(self, name, full=True):
        if self.screenshots:
            self.page.screenshot(path=self.screenshots / f"{name}.png", full_page=full)

    def close(self, claim, allowed=""):
        violations = self.page.evaluate("window.violations")
        check(f"{claim}: no violation of the policy", violations == [], violations)
        complaints = [text for text in self.complaints if not (allowed and re.search(allowed, text))]
        check(f"{claim}: the console has no error", complaints == [], complaints)
        check(f"{claim}: no text became markup", self.page.evaluate("window.hacked === undefined")
              and self.page.query_selector("#main img, #main script, #main iframe") is None)
        self.context.close()


def sample_report(status):
    """A report and its series, as /report serves them, with a version that wants to be markup."""
    now = int(time.time())
    at = lambda seconds: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    rules, series = [], []
    for number, rule in enumerate(status["rules"][:3]):
        failed = 60 * number + 18
        step = lambda percent: {"percent": percent, "requests": failed * percent // 100,
                                "installs": percent // 4, "addresses": percent // 5}
        group = lambda os, version, refused, reasons: {
            "os": os, "os_version": version, "verified": 200, "missing": 4, "unsupported": 0, "invalid": 8, "errors": 0,
            "preflight": 0, "refused": refused, "reasons": reasons}
        window = lambda name: {
            "window": name, "seconds": 3000, "requests": 1400, "verified": 1000 - failed, "missing": failed - 10,
            "unsupported": 1, "invalid": 8, "errors": 1, "preflight": 400, "refused": failed // 3, "installs": 31,
            "reasons": [{"reason": "counter-replayed", "count": 8}, {"reason": MARKUP, "count": 3},
                        {"reason": "preflight", "count": 400}],
            "latency": {"count": 1000, "p50": 0.004, "p90": 0.01, "p99": 0.2},
            "steps": [step(percent) for percent in (1, 5, 25, 100)],
            "versions": [{"version": MARKUP, "source": "claimed", "environment": "none", "verified": 0,
                          "missing": 9, "unsupported": 0, "invalid": 0, "errors": 0, "preflight": 0, "reasons": []},
                         {"version": "1042", "source": "signed", "environment": "production", "verified": 900,
                          "missing": 0, "unsupported": 0, "invalid": 8, "errors": 1, "preflight": 0, "reasons": []}],
            "systems": [group("apple", "26.1", failed // 3, [{"reason": "counter-replayed", "count": 8}]),
                        group("ios", "18.1", 0, []), group("android", "15", 0, []),
                        group(None, None, 0, [{"reason": MARKUP, "count": 9}])]}
        rules.append({"id": rule["id"], "mode": rule["mode"], "rollout": rule["rollout"], "gone": False,
                      "windows": [window(name) for name in ("5m", "1h", "1d")]})
        rows = lambda step, length: [[slot, 500 + slot // step % 50, 20 + 9 * number, 1, 4, 0, 0, 8, 0.08 + slot % 7 / 100,
                                      0.05 + slot % 7 / 100, 0.2 + slot % 7 / 50, 0.4 + slot % 7 / 25]
                                     for slot in range((now - length) // step * step, now, step)]
        series.append({"id": rule["id"], "gone": False, "series": [
            {"seconds": 10, "rows": rows(10, 300)}, {"seconds": 60, "rows": rows(60, 3600)},
            {"seconds": 900, "rows": rows(900, 86400)}]})
    head = {"started_at": at(now - 3000), "now": at(now)}
    columns = ["at", "verified", "missing", "unsupported", "invalid", "errors", "preflight", "refused", "mean",
               "p50", "p95", "p99"]
    return ({**head, "installs_error": 0.033, "rules": rules}, {**head, "columns": columns, "all": {"series": series[0]["series"]}, "rules": series})


def read_only(browser, gateway, screenshots):
    """What somebody sees who has no token."""
    visit = Visit(browser, gateway, screenshots)
    answer = visit.open("/")
    policy = answer.headers["content-security-policy"]
    check("the policy admits hashes alone", "'unsafe" not in policy and policy.count("'sha256-") == 2, policy)
    visit.rounds(3)
    check("it says that it is read-only", "Read-only" in visit.text("#access"))
    check("it has no button that changes something", visit.page.locator(
        "#rules button:has-text('Change…'):visible, #origins button:visible, #observe-all:visible").count() == 0)
    check("the refusals are not told", "need the token" in visit.text("#refusals-text")
          and visit.page.locator(".refusal").count() == 0)
    for rule in ["place-order", "pay", "profile", "watched", "default"]:
        check(f"it shows the rule {rule}", rule in visit.text("#rules"))
    check("it shows reasons", "assertion-missing" in visit.text("#reasons"))
    check("it shows a rate", re.search(r"[1-9]", visit.text("#tiles strong >> nth=0")) is not None)
    check("it draws the verdicts", visit.page.locator("#verdicts path.area").count() == 3)
    check("it shows all servers", visit.page.locator("#origins tbody tr").count() == 3)
    check("it names the host, in the head and in the title", socket.gethostname() in visit.text("#facts")
          and socket.gethostname() in visit.page.title())
    check("it shows memory and CPU of the process", re.search(r"\d MiB resident", visit.text("#process")) is not None
          and "of one core" in visit.text("#process"))
    visit.shoot("light-read-only")
    # A wrong token: nothing opens, and the field is empty again.
    visit.unlock("f" * 64)
    visit.page.wait_for_selector("#access-text:has-text('not the token')")
    check("a wrong token unlocks nothing", visit.page.is_visible("#token-form")
          and visit.page.input_value("#token") == "" and visit.page.locator(".refusal").count() == 0)
    visit.close("read-only", allowed="status of 401|status of 404")


def changes(browser, gateway, screenshots):
    """What somebody does who has the token, by keyboard alone."""
    visit = Visit(browser, gateway, screenshots, scheme="dark")
    visit.open()
    page = visit.page
    page.keyboard.press("Tab")
    check("the first stop of the keyboard skips the head", page.evaluate("document.activeElement.className") == "skip")
    page.focus("#token")
    page.keyboard.type(gateway.token)
    page.keyboard.press("Enter")
    page.wait_for_selector(".refusal")
    check("the token unlocks, and is in no field", page.input_value("#token") == "" and "shown the token" in visit.text("#access"))
    check("the token is in no store of the browser", gateway.token not in page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href, document.body.outerHTML])"))
    gateway.hostile()
    path = page.wait_for_selector(f".refusal .path:has-text('{MARKUP}')")
    check("a hostile path is shown as text", MARKUP in path.inner_text())
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"))
    for name in ["Change profile", "place-order", "Observe all…"]:
        check(f"the keyboard reaches “{name}”", name in reached, reached)
    # A rule is enforced for 10 %.
    page.focus("button[aria-label='Change profile']")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    page.fill("#share", "10")
    page.focus("#why")
    page.keyboard.type("tried in a browser")
    page.wait_for_selector("#change-then:has-text('would have refused')")
    check("the dialog says what the share would have refused", "of about" in visit.text("#change-then"), visit.text("#change-then"))
    visit.shoot("dark-change", full=False)
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]", state="detached")
    page.wait_for_selector("#rules .badge:has-text('enforce 10%')")
    rule = next(rule for rule in gateway.status()["rules"] if rule["id"] == "profile")
    check("the order is in force", (rule["mode"], rule["source"]) == ("enforce", "command") and rule["rollout"].startswith("10%"), rule)
    page.wait_for_selector("#audit li:has-text('tried in a browser')")
    visit.rounds(3)
    check("the order is marked in the charts", page.locator("#verdicts g.mark.order").count() >= 1
          and "profile: observe" in visit.text("#verdicts .legend"), visit.text("#verdicts .legend"))
    reasons = page.locator("#reason option").all_inner_texts()
    page.select_option("#reason", reasons[1])
    shown = set(page.locator(".refusal summary code").all_inner_texts())
    check("the refusals are filtered by reason", len(reasons) > 2 and shown == {reasons[1]}, (reasons, shown))
    page.select_option("#reason", "")
    # One refusal is found by its request id, and by its key, with the keyboard alone.
    fields = {"Authorization": "Bearer " + gateway.token}
    notes = json.loads(gateway.ask("GET", "/refusals", fields)[1])["refusals"]
    note = next(note for note in notes if note.get("key"))
    for name, member in [(note["request_id"], "request_id"), (note["key"], "key")]:
        page.focus("#find")
        page.keyboard.press("Control+A")
        page.keyboard.type(name)
        page.keyboard.press("Enter")
        page.wait_for_selector(f"#found-text:has-text('of {name}')")
        told = page.locator("#found .refusal").evaluate_all("entries => entries.map((entry) => entry.note)")
        check(f"a refusal is found by its {member}", told and all(entry[member] == name for entry in told), told)
    page.fill("#find", MARKUP[:60])
    page.keyboard.press("Enter")
    page.wait_for_selector("#found-text:has-text('No refusal of <img')")
    check("what is not known is said as text", page.locator("#found .refusal").count() == 0)
    page.fill("#find", "")
    check("an empty search shows nothing", page.locator("#found .refusal").count() == 0 and not page.is_visible("#found-text"))
    check("the order says why", "tried in a browser" in rule["order"], rule["order"])
    # Cancelled by Escape: nothing changes.
    page.focus("#observe-all")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog[open]", state="detached")
    check("Escape changes nothing, and gives the focus back", page.evaluate("document.activeElement.id") == "observe-all"
          and all(rule["source"] != "emergency" for rule in gateway.status()["rules"]))
    # The emergency, and back.
    for word, source in [("Observe all…", True), ("Resume all…", False)]:
        page.click(f"#observe-all:has-text('{word}')")
        if not source:
            # The end of the emergency says of each rule whom it would refuse.
            page.wait_for_selector("#change-then:has-text('place-order: last hour')")
        page.click("#change-do")
        page.wait_for_selector("dialog[open]", state="detached")
        page.wait_for_selector(".notice:has-text('No rule refuses')", state="visible" if source else "detached")
        found = any(rule["source"] == "emergency" for rule in gateway.status()["rules"])
        check(f"“{word}” does it in all rules", found == source)
    # A server.
    page.click("button[aria-label^='Drain'] >> nth=2")
    page.click("#change-do")
    page.wait_for_selector("button[aria-label^='Undrain']")
    check("a server is drained", any(server["state"] == "drained" for origin in gateway.status()["origins"]
                                     for server in origin["servers"]))
    page.click("button[aria-label^='Undrain']")
    page.wait_for_selector("button[aria-label^='Undrain']", state="detached")
    # An opened entry stays open, and keeps the focus, while figures change.
    page.focus("#rules .more >> nth=0")
    page.keyboard.press("Enter")
    page.locator(".refusal summary").first.click()
    page.focus("#rules .more >> nth=0")
    visit.rounds(3)
    opened = page.locator(".refusal[open]").count(), page.locator("#rules .details:visible").count()
    check("what was opened stays open", opened == (1, 1), opened)
    check("the focus stays", page.evaluate("document.activeElement.className") == "more")
    page.focus("#verdicts svg")
    page.keyboard.press("ArrowLeft")
    check("a chart is read by the arrow keys", re.search(r"\d\d:\d\d:\d\d", visit.text("#verdicts .when")) is not None)
    label = page.get_attribute("#verdicts svg", "aria-label")
    check("the chart shows what was counted", re.search(r"verified (0\.\d*)?[1-9]", label) is not None, label)
    visit.shoot("dark-open")
    page.click("#theme")
    page.click("#theme")
    page.click("#forget")
    check("the token is forgotten at a word", page.is_visible("#token-form") and page.locator(".refusal").count() == 0)
    visit.close("changes", allowed="status of 404")


def with_report(browser, gateway, screenshots):
    """The report's figures, of a sample, and hostile texts wherever there is one."""
    for size, scheme, name in [(DESK, "light", "light-report"), (DESK, "dark", "dark-report"), (PHONE, "light", "phone"),
                               (PHONE, "dark", "phone-dark")]:
        visit = Visit(browser, gateway, screenshots, size, scheme)
        report, series = sample_report(gateway.status())
        serve = lambda content: lambda route: route.fulfill(json=content)
        visit.page.route(re.compile(r"/report/(5m|1h|1d)$"), serve(report))
        visit.page.route(re.compile(r"/report/series$"), serve(series))

        def hostile(route):
            content = route.fetch().json()
            for note in content["refusals"]:
                for member in ["path", "host", "method", "client", "title", "advice", "app", "reason", "key", "request_id"]:
                    note[member] = MARKUP + str(note.get(member))
            route.fulfill(json=content)
        visit.page.route(re.compile(r"/refusals$"), hostile)

        def hostile_status(route):
            content = route.fetch().json()
            content["configuration"]["last_reload_error"] = MARKUP
            content["store"]["last_error"] = MARKUP
            content["unknown_servers"] = [MARKUP]
            content["certificates"]["shown"] = [{"listener": MARKUP, "file": MARKUP, "names": [MARKUP],
                                                 "ends_at": "2020-01-01T00:00:00Z"}]
            content["rules"][1].update(order=MARKUP, source="command")
            content["origins"][0]["servers"][0].update(last_failure=MARKUP, last_failure_at="2026-01-01T00:00:00Z")
            route.fulfill(json=content)
        visit.page.route(re.compile(r"/status$"), hostile_status)
        visit.open()
        visit.unlock(gateway.token)
        visit.page.wait_for_selector(".refusal")
        visit.page.select_option("#window", "1h")
        visit.rounds(2)
        visit.page.click("#rules .more >> nth=1")
        visit.page.locator(".refusal summary").first.click()
        check(f"{name}: what 25 % would refuse is shown", "25 %" in visit.text("#rules"))
        check(f"{name}: versions are shown as text", MARKUP in visit.text("#rules"))
        # Of 1,400 requests 400 are preflights, 18 were not verified, and 6 of these were refused.
        cells = visit.page.locator("#rules tbody >> nth=0").locator("tr >> nth=0").locator("td.n").all_text_contents()
        check(f"{name}: a preflight is not judged, and would not be refused",
              cells[0] == "1,000" and cells[2] == "12 · 1.20 %" and "preflight" not in visit.text("#reasons"), cells)
        rows = visit.page.locator("#groups tbody tr th").all_inner_texts()
        check(f"{name}: the most refused system is first", rows[0] == "apple 26.1" and len(rows) == 12, rows)
        check(f"{name}: reasons of a group are text", MARKUP in visit.text("#groups"))
        visit.page.fill("#groups-only", "iOS 26.1")
        rows = visit.page.locator("#groups tbody tr").all_inner_texts()
        check(f"{name}: the view says which rule refuses iOS 26.1", len(rows) == 3 and all("apple 26.1" in row for row in rows)
              and any("counter-replayed 8" in row for row in rows), rows)
        # Their first column may break anywhere, since it has what clients send.
        narrow = visit.page.evaluate("""[...document.querySelectorAll('table.small td:first-child')]
            .filter((e) => e.checkVisibility()).map((e) => e.getBoundingClientRect().width).filter((width) => width < 80)""")
        check(f"{name}: no column of a rule's tables is a letter wide", narrow == [], narrow)
        sides = visit.page.evaluate("""[...document.querySelectorAll('#groups tr > :last-child')]
            .map((e) => getComputedStyle(e).textAlign).filter((side) => side !== 'left' && side !== 'start')""")
        check(f"{name}: reasons stand below their heading", sides == [], sides)
        visit.shoot(name + "-groups", full=True)
        visit.page.fill("#groups-only", "")
        visit.page.select_option("#groups-by", "build")
        check(f"{name}: builds are a group, too", "1042" in visit.text("#groups"))
        visit.page.select_option("#groups-by", "os")
        check(f"{name}: notices are text", MARKUP in visit.text("#notices"))
        width = visit.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        check(f"{name}: nothing sticks out of the page", width == 0, width)
        if size == PHONE:
            small = visit.page.evaluate("""[...document.querySelectorAll('button, select, input:not([type=radio])')]
                .filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 34).map((e) => e.id || e.textContent)""")
            check(f"{name}: buttons are large enough for a thumb", small == [], small)
        visit.shoot(name)
        visit.page.click("button[aria-label='Change profile']")
        visit.page.fill("#share", "25")
        visit.page.wait_for_selector("#change-then:has-text('25% would have refused')")
        visit.shoot(name + "-change", full=False)
        visit.page.keyboard.press("Escape")
        visit.close(name)


def newest(browser, gateway, screenshots):
    """The chart ends at the newest slot, as far as it has passed; where nothing was asked there is no latency."""
    for name, rows, rate, latency in [("the newest slot", [[-14, 100], [-4, 20]], "5/s", "200 ms"),
                                      ("an idle gateway", [[-64, 100]], "0/s", "–")]:
        visit = Visit(browser, gateway, screenshots)
        report, series = sample_report(gateway.status())
        now = int(time.time())
        at = lambda seconds: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
        told = [[now + begun, count, 0, 0, 0, 0, 0, 0, 0.1, 0.1, 0.15, 0.2] for begun, count in rows]
        series["all"]["series"] = [{"seconds": 10, "rows": told}, {"seconds": 60, "rows": []}, {"seconds": 900, "rows": []}]
        series.update(now=at(now), started_at=at(now - 290))
        visit.page.route(re.compile(r"/report/(5m|1h|1d)$"), lambda route: route.fulfill(json=report))
        visit.page.route(re.compile(r"/report/series$"), lambda route: route.fulfill(json=series))
        visit.open()
        visit.page.wait_for_selector("#window option[value='5m']", state="attached")
        visit.page.select_option("#window", "5m")
        visit.rounds(2)
        label = visit.page.get_attribute("#verdicts svg", "aria-label")
        check(f"{name} is now", f"now: verified {rate}" in label, label)
        label = visit.page.get_attribute("#latency svg", "aria-label")
        check(f"{name} has the latency of its requests, or none", f"p99 {latency}" in label, label)
        path = visit.page.get_attribute("#latency path.line", "d")
        check(f"{name}: no line is drawn where nothing was asked", "NaN" not in path and path.startswith("M"), path)
        visit.close(name, allowed="status of 404")


def late_answers(browser, gateway, screenshots):
    """An answer about what is no longer chosen comes after the one about what is."""
    visit = Visit(browser, gateway, screenshots)
    report, series = sample_report(gateway.status())
    held = []

    def of(name):
        return {**report, "rules": [{**rule, "windows": [window for window in rule["windows"] if window["window"] == name]}
                                    for rule in report["rules"]]}
    visit.page.route(re.compile(r"/report/5m$"), lambda route: route.fulfill(json=of("5m")))
    visit.page.route(re.compile(r"/report/1d$"), lambda route: held.append(route))
    visit.page.route(re.compile(r"/report/series$"), lambda route: route.fulfill(json=series))
    visit.open()
    visit.page.wait_for_selector("#window option[value='1d']", state="attached")
    with visit.page.expect_request(re.compile(r"/report/1d$")):
        visit.page.select_option("#window", "1d")
    with visit.page.expect_response(re.compile(r"/report/5m$")):
        visit.page.select_option("#window", "5m")
    visit.page.wait_for_timeout(500)
    for route in held:
        route.fulfill(json=of("1d"))
    visit.page.wait_for_timeout(500)
    cells = visit.page.locator("#rules tbody >> nth=0").locator("tr >> nth=0").locator("td.n").all_text_contents()
    check("a late answer about another window does not take the figures away", cells[0] == "1,000", cells)
    visit.close("late answers", allowed="status of 404")


def over_unix(browser, program, screenshots):
    """Through a forwarded Unix socket, which asks for no token: a stranger's page may not use it."""
    gateway = Gateway(program, "unix")
    try:
        visit = Visit(browser, gateway, screenshots)
        visit.open(host="localhost")
        visit.page.wait_for_selector("#access-text:has-text('You may change')")
        visit.page.wait_for_selector("button[aria-label='Change profile']:visible")
        visit.close("unix", allowed="status of 404")
        # Another site: a form and a script that no preflight holds back.
        context = browser.new_context()
        page = context.new_page()
        target = f"http://127.0.0.1:{gateway.admin_port}/rollout/change"
        page.route("http://attacker.example/", lambda route: route.fulfill(content_type="text/html", body="<p>nice</p>"))
        page.goto("http://attacker.example/")
        order = '{"all":"observe","why":""}'
        page.evaluate("""([target, order]) => fetch(target, { method: 'POST', mode: 'no-cors', body: order }).catch(() => 0)""",
                      [target, order])
        with page.expect_navigation():
            page.evaluate("""([target, order]) => {
                const form = document.createElement('form');
                form.method = 'post'; form.enctype = 'text/plain'; form.action = target;
                const input = document.createElement('input');
                input.name = order.slice(0, -2) + '='; input.value = '"}';
                form.append(input); document.body.append(form); form.submit();
            }""", [target, order])
        check("a stranger's page changes nothing", all(rule["source"] == "file" for rule in gateway.status()["rules"]))
        page.goto(f"http://127.0.0.1:{gateway.admin_port}/dashboard")
        framed = context.new_page()
        framed.route("http://attacker.example/", lambda route: route.fulfill(
            content_type="text/html", body=f"<iframe src='http://127.0.0.1:{gateway.admin_port}/dashboard'></iframe>"))
        framed.goto("http://attacker.example/")
        framed.wait_for_timeout(500)
        check("the page can't be framed", not any("/dashboard" in frame.url and frame.query_selector("#rules")
                                                  for frame in framed.frames[1:]))
        context.close()
    finally:
        gateway.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("program")
    options = parser.parse_args()
    if options.screenshots:
        options.screenshots.mkdir(parents=True, exist_ok=True)
    gateway = Gateway(options.program)
    try:
        gateway.signed("place-order", 300, 40, "missing=1%,replayed=1%,tampered=0.5%")
        gateway.signed("pay", 300, 5, "missing=5%,tampered=5%")
        gateway.signed("profile", 300, 1, "unknown=50%")
        gateway.hostile()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            read_only(browser, gateway, options.screenshots)
            changes(browser, gateway, options.screenshots)
            with_report(browser, gateway, options.screenshots)
            newest(browser, gateway, options.screenshots)
            late_answers(browser, gateway, options.screenshots)
            over_unix(browser, options.program, options.screenshots)
            browser.close()
    finally:
        gateway.end()
    print(f"dashboard: {len(failures)} of the claims do not hold" if failures else "dashboard: all holds")
    sys.exit(1 if failures else 0)


main()
