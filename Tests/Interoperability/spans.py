#!/usr/bin/env python3
"""Judges spans as OpenTelemetry's own messages read them.

usage: spans.py FOLDER

FOLDER has a file for each call that a collector got. Each must be an ExportTraceServiceRequest in OTLP's JSON: read by
opentelemetry-proto, which refuses members that it does not know. One that ends with .pb is read as protobuf. Prints a JSON array with each span. Exit status: 0 when
all are read, 1 when not, 77 where opentelemetry-proto is not installed.
"""

import base64
import json
import pathlib
import re
import sys

try:
    from google.protobuf import json_format
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
except ImportError:
    print("spans: NOT RUN: pip install opentelemetry-proto", file=sys.stderr)
    sys.exit(77)

DIGITS = {"traceId": 32, "spanId": 16, "parentSpanId": 16}


def encoded(value):
    """OTLP writes ids in hexadecimal (OTLP 1.x, "JSON Protobuf Encoding"); protobuf's own JSON has base64."""
    if isinstance(value, list):
        return [encoded(element) for element in value]
    if not isinstance(value, dict):
        return value
    read = {}
    for name, member in value.items():
        if name in DIGITS:
            if not re.fullmatch(r"[0-9a-f]{%d}" % DIGITS[name], member) or set(member) == {"0"}:
                raise ValueError(f"{name}: {member!r}")
            member = base64.b64encode(bytes.fromhex(member)).decode()
        read[name] = encoded(member)
    return read


def plain(attributes):
    kinds = {"string_value": str, "int_value": int, "bool_value": bool}
    found = {}
    for attribute in attributes:
        kind = attribute.value.WhichOneof("value")
        if attribute.key in found or kind not in kinds:
            raise ValueError(f"the attribute {attribute.key}: {kind}")
        found[attribute.key] = kinds[kind](getattr(attribute.value, kind))
    return found


def main():
    spans = []
    for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        request = ExportTraceServiceRequest()
        if path.suffix == ".pb":
            request.ParseFromString(path.read_bytes())
        else:
            json_format.ParseDict(encoded(json.loads(path.read_text())), request)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    if not 0 < span.start_time_unix_nano <= span.end_time_unix_nano:
                        raise ValueError(f"{span.name} ends before it begins")
                    spans.append({
                        "trace": span.trace_id.hex(), "span": span.span_id.hex(), "parent": span.parent_span_id.hex(),
                        "name": span.name, "kind": span.kind, "failed": span.status.code == 2,
                        "began": span.start_time_unix_nano, "ended": span.end_time_unix_nano,
                        "attributes": plain(span.attributes), "resource": plain(resource.resource.attributes),
                        "schema": scope.schema_url, "scope": scope.scope.name})
    print(json.dumps(spans))


main()
