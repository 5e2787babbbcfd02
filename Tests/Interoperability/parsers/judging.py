"""What a server parsed, compared with what was forwarded."""
import fnmatch
import json
import os
import re
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
# The gateway writes these anew between two hops, and servers need not show them to applications.
FRAMING = {"content-length", "transfer-encoding", "connection", "te"}
# The gateway draws one for each request, so it is another one when a case is sent again.
DRAWN_ID = re.compile("[0-9a-f]{32}")


def grouped(fields, key, ignored):
    """Values by name; those of one name joined, white space at list separators aside."""
    found = {}
    for name, value in fields:
        if key(name) == "x-request-id" and DRAWN_ID.fullmatch(value):
            value = "drawn"
        if key(name) not in FRAMING and key(name) not in ignored:
            found.setdefault(key(name), []).append(value.strip(" \t"))
    return {name: re.sub(r"\s*[,;]\s*", ",", ",".join(values)) for name, values in found.items()}


def variable(name):
    """A field's name as CGI variables tell it apart."""
    name = re.sub("[^a-z0-9]", "-", name.lower())
    return name[5:] if name.startswith("http-") else name


def difference(sent, seen, ignored=frozenset()):
    """What a server saw otherwise than it was sent; `None` when nothing. Of `ignored` fields nothing is said."""
    if "fault" in seen:
        return f"it forwards what is no request: {seen['fault']}"
    if seen["method"] != sent["method"]:
        return f"method {seen['method']} for {sent['method']}"
    if (seen["length"], seen["sha256"]) != (sent["length"], sent["sha256"]):
        return f"{seen['length']} octets of content for {sent['length']}"
    target, how = sent["target"], seen.get("how", "raw")
    if "decoded" in how:
        path, mark, query = target.partition("?")
        target = urllib.parse.unquote_to_bytes(path).decode("latin-1")
        target += mark + query if query else ""
    if seen["target"] != target:
        return f"target {seen['target']!r} for {target!r}"
    key = str.lower if how == "raw" else variable
    expected, found = grouped(sent["fields"], key, ignored), grouped(seen["fields"], key, ignored)
    if found.get("app-attest-verdict") != "refuse":
        return f"the verdict {found.get('app-attest-verdict')!r}"
    if how != "raw" and "content-type" not in expected:
        # RFC 3875 has a default for it, which wsgiref and lighttpd give.
        found.pop("content-type", None)
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name, "") != found.get(name, ""):
            return f"{name}: {found.get(name)!r} for {expected.get(name)!r}"
    return None


def compare(expected, seen, ignored=frozenset()):
    """What differed in a case; a server may refuse a request, but not see another one."""
    rest, refused = list(expected), []
    for line in seen:
        faults = [difference(sent, line, ignored) for sent in rest]
        if None not in faults:
            return faults[0] if faults else f"a request more: {line.get('method')} {line.get('target')}"
        place = faults.index(None)
        refused += rest[:place]
        rest = rest[place + 1:]
    refused += rest
    return "refused: " + outline(refused[0]) if refused else None


def outline(request):
    names = {name.lower() for name, _ in request["fields"]}
    framing = "without length"
    if "transfer-encoding" in names:
        framing = "chunked"
    elif "content-length" in names:
        framing = "with length"
    return f"{request['method']} {request['target']} {framing}"


def reasons(backend):
    with open(os.path.join(HERE, "listed.json"), encoding="utf-8") as file:
        return json.load(file).get(backend, {})


def judge(backend, faults, names):
    """What is wrong with the list or the server; the number of listed disagreements."""
    wrong, listed = [], 0
    used = set()
    for name, fault in faults.items():
        found = [pattern for pattern in reasons(backend) if matches(name, fault, pattern)]
        used.update(found)
        if found:
            listed += 1
        else:
            wrong.append(f"{backend}: {name}: {fault}")
    for pattern in reasons(backend):
        if pattern not in used:
            wrong.append(f"{backend}: {pattern} agrees now; take it off the list")
    return wrong, listed


def matches(name, fault, pattern):
    case, _, what = pattern.partition(": ")
    return fnmatch.fnmatchcase(name, case) and fnmatch.fnmatchcase(fault, what or "*")
