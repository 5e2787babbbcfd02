"""Compares what an application executed with what was signed."""
import hashlib
import urllib.parse

from gateway import PROTECTED


def differences(record, promise):
    """How an executed request differs from the signed one: the first difference, then fields."""
    target = urllib.parse.urlsplit(promise.target)
    expected = {
        "method": promise.method,
        "path": target.path,
        "query": urllib.parse.parse_qs(target.query),
        "sha256": hashlib.sha256(promise.content).hexdigest(),
    }
    for name, value in expected.items():
        # PHP writes an empty map as a list.
        if (record[name] or {}) != value:
            if name == "sha256":
                signed = promise.content[:60]
                yield f"{seen(record)}, {record['length']} bytes, where {signed!r} was signed"
            else:
                yield f"{name} {record[name]!r} where {value!r} was signed"
            return
    for name, value in promise.fields.items():
        if record["fields"].get(name) != value:
            yield f"{name}: {record['fields'].get(name)!r} where {value!r} was signed"


def faults(records, promise):
    """What is wrong with the records of one token; nothing when all is as it was signed."""
    ran = 0
    for record in records:
        what = f"{record['handler']} ran {record['method']} {record['path']}"
        if record["stage"] == "entered":
            if record["handler"] in PROTECTED and promise is None:
                yield f"{what} without a proof"
            if promise and promise.broken and not promise.streamed:
                yield f"{what}: the application was entered for content that is held"
            continue
        passed = record["fields"].get("app-attest-verdict") == "pass"
        if record["handler"] not in PROTECTED and not passed:
            continue
        if passed:
            what += " with the verdict pass"
        if promise is None:
            yield f"{what} without a proof; {seen(record)}"
            continue
        for difference in differences(record, promise):
            yield f"{what}: {difference}"
        ran += 1
    if ran > 1:
        yield f"ran {ran} times for one proof"


def seen(record):
    return f"form {record['form']}" if record["form"] else f"content {record['content'][:60]!r}"


def ran(records):
    return [record for record in records if record["stage"] == "executed"]
