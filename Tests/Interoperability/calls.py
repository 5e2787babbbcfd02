#!/usr/bin/env python3
"""Makes gRPC calls through the gateway, with grpcio on both sides.

usage: calls.py PORTCULLIS

A client of grpcio calls a server of grpcio by way of the gateway, over HTTP/2 on both sides: unary
calls, streams in both directions, deadlines, messages larger than any window, calls that the client
cancels, that the server fails, and that the gateway refuses; with and without a proof that signs the
message; and a server that goes away, or says by gRPC's health protocol that it does not serve. It also
asks the gateway for decisions, as Envoy does over gRPC.

Exit status: 0 when all held, 1 when something is WRONG, 2 when grpcio is not there.
"""
import concurrent.futures
import hashlib
import json
import os
import shutil
import struct
import sys
import tempfile
import threading
import time
import urllib.request

try:
    import grpc
except ImportError:
    sys.exit(2)

from device import APP, Device, request_lines
from processes import Processes, end_when_told, free_port

PATIENCE = 30.0
LARGE = 6 << 20
OPTIONS = [("grpc.max_receive_message_length", 2 * LARGE), ("grpc.use_local_subchannel_pool", 1)]
HEALTH = "/grpc.health.v1.Health/Check"
CHECK = "/envoy.service.auth.v3.Authorization/Check"
# HealthCheckResponse { status: SERVING } and { status: NOT_SERVING }.
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"


def wait_for(what, is_true):
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not come in time")
        time.sleep(0.02)


class Service(grpc.GenericRpcHandler):
    """The server's methods, by their paths. Messages are bytes."""

    def __init__(self):
        self.calls = []
        self.ended = threading.Event()
        self.health = SERVING

    def service(self, details):
        path = details.method
        if path == HEALTH:
            return grpc.unary_unary_rpc_method_handler(lambda _, __: self.health)
        method = path.rsplit("/", 1)[1]
        makers = {
            "Unary": (grpc.unary_unary_rpc_method_handler, self.unary),
            "Fail": (grpc.unary_unary_rpc_method_handler, self.fail),
            "Sleep": (grpc.unary_unary_rpc_method_handler, self.sleep),
            "Down": (grpc.unary_stream_rpc_method_handler, self.down),
            "Forever": (grpc.unary_stream_rpc_method_handler, self.forever),
            "Up": (grpc.stream_unary_rpc_method_handler, self.up),
            "Both": (grpc.stream_stream_rpc_method_handler, self.both),
        }
        if method not in makers:
            return None
        maker, body = makers[method]

        def noted(request, context):
            self.calls.append(path)
            return body(request, context)

        return maker(noted)

    def unary(self, request, context):
        context.send_initial_metadata((("x-initial", "one"),))
        context.set_trailing_metadata((("x-last", "two"), ("x-bytes-bin", b"\x00\xff")))
        return request

    def fail(self, request, context):
        context.set_trailing_metadata((("x-why", "asked"),))
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "100 % wrong: ü")

    def sleep(self, request, context):
        context.add_callback(self.ended.set)
        self.ended.wait(PATIENCE)
        return request

    def down(self, request, context):
        for number in range(int(request)):
            yield b"%d" % number

    def forever(self, request, context):
        context.add_callback(self.ended.set)
        while not self.ended.is_set():
            yield b"x" * 1000

    def up(self, requests, context):
        digest = hashlib.sha256()
        for request in requests:
            digest.update(request)
        return digest.digest()

    def both(self, requests, context):
        for request in requests:
            yield request + b"!"


class Place:
    """The server, the gateway before it, and a device."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.device = Device()
        self.service = Service()
        self.server = None
        self.origin, self.port, self.admin = free_port(), free_port(), free_port()
        self.asked = free_port()
        self.processes = Processes(os.path.join(folder, "gateway.output"))
        self.path = os.path.join(folder, "portcullis.yaml")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(self.configuration())
        keys = os.path.join(folder, "keys")
        with open(keys, "w", encoding="utf-8") as file:
            file.write(self.device.import_line())
        self.processes.start([program, "keys", "import", "--config", self.path, keys])
        self.processes.processes[-1].wait()
        self.begin_server()
        self.processes.start([program, "serve", self.path])
        self.processes.wait_port(self.port, "portcullis")
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.port}", options=OPTIONS)
        self.decisions = grpc.insecure_channel(f"127.0.0.1:{self.asked}", options=OPTIONS)

    def configuration(self):
        server = f"servers: [\"127.0.0.1:{self.origin}\"], http2: on"
        return f"""\
listen:
  - {{ address: "127.0.0.1:{self.port}", http2: on }}
  - {{ address: "127.0.0.1:{self.asked}", decides: ext_authz_grpc, content: whole }}
trusted_proxies: [127.0.0.1/32]
admin: {{ address: "127.0.0.1:{self.admin}" }}
event_loops: 1
origins:
  calls:
    {{ {server}, check: {{ grpc: test.Calls, interval: 50ms, healthy: 1, unhealthy: 1 }} }}
  unwatched: {{ {server}, eject: {{ failures: 0 }} }}
  hasty: {{ {server}, first_byte_timeout: 300ms, eject: {{ failures: 0 }} }}
apps: [{{ id: {APP}, environments: [production] }}]
store: {{ sqlite: {self.folder}/portcullis.db }}
log: {{ access: {self.folder}/access.log, level: error }}
default: {{ origin: unwatched, mode: off }}
rules:
  - {{ id: watched, match: {{ path: /test.Watched/* }}, origin: calls, mode: off }}
  - {{ id: hasty, match: {{ path: /test.Hasty/* }}, origin: hasty, mode: off }}
  - id: signed
    match: {{ method: [POST], path: /test.Signed/* }}
    origin: unwatched
    mode: enforce
    body: {{ digest: held, limit: 8MiB }}
  - id: rated
    match: {{ method: [POST], path: /test.Rated/* }}
    origin: unwatched
    mode: enforce
    rate: {{ key: 1/d, burst: 3 }}
"""

    def begin_server(self):
        pool = concurrent.futures.ThreadPoolExecutor(max_workers=16)
        self.server = grpc.server(pool, handlers=[self.service], options=OPTIONS)
        self.server.add_insecure_port(f"127.0.0.1:{self.origin}")
        self.server.start()

    def stop(self):
        self.channel.close()
        self.decisions.close()
        self.server.stop(None)
        self.processes.stop()

    # Calls.

    def unary(self, path, request, metadata=(), timeout=PATIENCE, channel=None):
        """The answer and the call, or the error, which has what a call has."""
        try:
            return (channel or self.channel).unary_unary(path).with_call(
                request, timeout=timeout, metadata=metadata
            )
        except grpc.RpcError as error:
            return None, error

    def check(self, path, content, metadata=()):
        """Asks as Envoy does; the codes of status and denied response, and the names of fields."""
        lines = [(b":path", path.encode()), (b":method", b"POST")]
        lines += [(name.encode(), value.encode()) for name, value in metadata]
        if content:
            lines.append((b"x-envoy-auth-partial-body", b"false"))
        lines = b"".join(field(1, field(1, name) + field(3, value)) for name, value in lines)
        http = field(2, b"POST") + field(4, path.encode()) + field(5, b"a.example")
        http += field(6, b"http") + field(12, content) + field(13, lines)
        answer, call = self.unary(CHECK, field(1, field(4, field(2, http))), channel=self.decisions)
        same(call.code(), grpc.StatusCode.OK)
        found = dict(fields_of(answer))
        denied = dict(fields_of(found.get(2, b"")))
        options = [value for number, value in fields_of(found.get(3, b"") or found[2])
                   if number == 2]
        names = [dict(fields_of(dict(fields_of(option))[1]))[1] for option in options]
        return (dict(fields_of(found[1])).get(1, 0), dict(fields_of(denied.get(1, b""))).get(1, 0),
                [name.decode() for name in names])

    def challenge(self):
        content = b'{"purpose":"assertion","count":1}'
        url = f"http://127.0.0.1:{self.port}/.well-known/app-attest/challenges"
        asked = urllib.request.Request(url, content, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            return json.load(answer)["challenges"][0]

    def proof(self, path, request):
        """The metadata that signs a unary call: its content is the message with its prefix."""
        challenge = self.challenge()
        content = b"\0" + struct.pack(">I", len(request)) + request
        assertion = self.device.assertion(request_lines("POST", path, content, challenge))
        return (
            ("app-attest-key-id", self.device.key_id),
            ("app-attest-challenge", challenge),
            ("app-attest-assertion", assertion),
        )


def varint(number):
    return bytes([number & 127 | 128]) + varint(number >> 7) if number > 127 else bytes([number])


def field(number, value):
    """A field of Protocol Buffers, of bytes."""
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields_of(message):
    """Numbers and values of a message's fields: varints, and bytes."""
    def read():
        nonlocal message
        number, shift = 0, 0
        while True:
            byte, message = message[0], message[1:]
            number, shift = number | (byte & 127) << shift, shift + 7
            if byte < 128:
                return number

    while message:
        tag = read()
        value = read()
        if tag & 7 == 2:
            value, message = message[:value], message[value:]
        yield tag >> 3, value


def same(found, wanted):
    if found != wanted:
        raise AssertionError(f"{found!r:.300} is not {wanted!r:.300}")


def status(error, wanted, reason=None):
    """Checks a failed call, and the problem in its message."""
    same(error.code(), wanted)
    if reason is None:
        return
    problem = json.loads(error.details())
    same(problem["reason"], reason)
    fields = dict(error.initial_metadata() or ()) | dict(error.trailing_metadata() or ())
    same(fields["app-attest-error"].split(";")[0], reason)


# The cases. A test's name is what it claims.

def unary_calls_have_their_message_and_metadata(place):
    answer, call = place.unary("/test.Plain/Unary", b"hello")
    same(answer, b"hello")
    same(call.code(), grpc.StatusCode.OK)
    same(dict(call.initial_metadata())["x-initial"], "one")
    last = dict(call.trailing_metadata())
    same((last["x-last"], last["x-bytes-bin"]), ("two", b"\x00\xff"))


def a_failed_call_has_the_servers_status_and_message(place):
    _, error = place.unary("/test.Plain/Fail", b"x")
    status(error, grpc.StatusCode.FAILED_PRECONDITION)
    same(error.details(), "100 % wrong: ü")
    same(dict(error.trailing_metadata())["x-why"], "asked")


def a_method_that_is_none_is_the_servers_answer(place):
    _, error = place.unary("/test.Plain/None", b"x")
    status(error, grpc.StatusCode.UNIMPLEMENTED)


def messages_larger_than_any_window_come_whole(place):
    message = os.urandom(1024) * (LARGE // 1024)
    answer, _ = place.unary("/test.Plain/Unary", message)
    same(answer == message, True)


def streams_go_down_up_and_both_ways(place):
    numbers = list(place.channel.unary_stream("/test.Plain/Down")(b"2000", timeout=PATIENCE))
    same(numbers, [b"%d" % number for number in range(2000)])
    pieces = [os.urandom(5000) for _ in range(500)]
    digest = place.channel.stream_unary("/test.Plain/Up")(iter(pieces), timeout=PATIENCE)
    same(digest, hashlib.sha256(b"".join(pieces)).digest())


def each_message_of_a_stream_passes_before_the_next(place):
    # The next message is made of the answer to the one before: nothing may wait for an end.
    heard = threading.Semaphore(1)
    count = 200

    def messages():
        for number in range(count):
            if not heard.acquire(timeout=PATIENCE):
                return
            yield b"%d" % number

    found = []
    for answer in place.channel.stream_stream("/test.Plain/Both")(messages(), timeout=PATIENCE):
        found.append(answer)
        heard.release()
    same(found, [b"%d!" % number for number in range(count)])


def many_calls_at_once_have_each_their_own_answer(place):
    call = place.channel.unary_unary("/test.Plain/Unary")
    futures = [call.future(b"%d" % number, timeout=PATIENCE) for number in range(300)]
    same([future.result() for future in futures], [b"%d" % number for number in range(300)])


def a_deadline_ends_the_call_at_both_ends(place):
    place.service.ended.clear()
    _, error = place.unary("/test.Plain/Sleep", b"x", timeout=0.5)
    status(error, grpc.StatusCode.DEADLINE_EXCEEDED)
    same(place.service.ended.wait(PATIENCE), True)


def the_gateways_own_deadline_is_one_of_the_call(place):
    place.service.ended.clear()
    _, error = place.unary("/test.Hasty/Sleep", b"x")
    status(error, grpc.StatusCode.DEADLINE_EXCEEDED, "origin-timeout")
    same(place.service.ended.wait(PATIENCE), True)


def a_call_that_the_client_cancels_ends_at_the_server(place):
    place.service.ended.clear()
    call = place.channel.unary_stream("/test.Plain/Forever")(b"x", timeout=PATIENCE)
    for _ in range(3000):
        next(call)
    call.cancel()
    same(place.service.ended.wait(PATIENCE), True)
    same(place.unary("/test.Plain/Unary", b"after")[0], b"after")


def a_call_without_proof_is_refused(place):
    before = len(place.service.calls)
    _, error = place.unary("/test.Signed/Unary", b"hello")
    status(error, grpc.StatusCode.UNAUTHENTICATED, "assertion-missing")
    fields = dict(error.initial_metadata() or ()) | dict(error.trailing_metadata() or ())
    same(fields["www-authenticate"].startswith("AppAttest "), True)
    same(len(place.service.calls), before)


def a_stream_without_proof_is_refused_before_its_end(place):
    waiting = threading.Event()

    def messages():
        yield b"first"
        waiting.wait(PATIENCE)

    try:
        list(place.channel.stream_stream("/test.Signed/Both")(messages(), timeout=PATIENCE))
        raise AssertionError("it was served")
    except grpc.RpcError as error:
        status(error, grpc.StatusCode.UNAUTHENTICATED, "assertion-missing")
    finally:
        waiting.set()


def a_signed_call_is_served_once(place):
    path, request = "/test.Signed/Unary", os.urandom(200_000)
    proof = place.proof(path, request)
    before = place.service.calls.count(path)
    same(place.unary(path, request, proof)[0], request)
    _, error = place.unary(path, request, proof)
    status(error, grpc.StatusCode.UNAUTHENTICATED)
    same(place.service.calls.count(path), before + 1)


def a_call_with_another_message_than_was_signed_is_refused(place):
    path = "/test.Signed/Unary"
    before = len(place.service.calls)
    _, error = place.unary(path, b"to: eve", place.proof(path, b"to: bob"))
    status(error, grpc.StatusCode.PERMISSION_DENIED, "signature-mismatch")
    same(len(place.service.calls), before)


def a_message_over_the_limit_is_refused(place):
    path, request = "/test.Signed/Unary", bytes(9 << 20)
    _, error = place.unary(path, request, place.proof(path, request))
    status(error, grpc.StatusCode.RESOURCE_EXHAUSTED, "content-too-large")


def calls_of_a_device_over_its_rate_are_throttled(place):
    path = "/test.Rated/Unary"
    before = place.service.calls.count(path)
    for number in range(3):
        request = b"%d" % number
        same(place.unary(path, request, place.proof(path, request))[0], request)
    for _ in range(2):
        _, error = place.unary(path, b"x", place.proof(path, b"x"))
        status(error, grpc.StatusCode.RESOURCE_EXHAUSTED, "key-throttled")
        same(json.loads(error.details())["next"], "retry-later")
        fields = dict(error.initial_metadata() or ()) | dict(error.trailing_metadata() or ())
        same(80_000 <= int(fields["retry-after"]) <= 86_401, True)
    # The rate is the device's: other calls of it go on, and the server saw no more than the burst.
    same(place.unary("/test.Signed/Unary", b"x", place.proof("/test.Signed/Unary", b"x"))[0], b"x")
    same(place.service.calls.count(path), before + 3)


def a_server_that_says_it_does_not_serve_gets_no_calls(place):
    same(place.unary("/test.Watched/Unary", b"1")[0], b"1")
    place.service.health = NOT_SERVING
    wait_for("the end", lambda: place.unary("/test.Watched/Unary", b"x")[0] is None)
    _, error = place.unary("/test.Watched/Unary", b"x")
    status(error, grpc.StatusCode.UNAVAILABLE, "origin-down")
    place.service.health = SERVING
    wait_for("the return", lambda: place.unary("/test.Watched/Unary", b"x")[0] == b"x")


def a_server_that_ends_is_unavailable_and_comes_back(place):
    results = []
    stop = threading.Event()

    def call_on():
        while not stop.is_set():
            results.append(place.unary("/test.Plain/Unary", b"x"))

    callers = [threading.Thread(target=call_on) for _ in range(4)]
    for caller in callers:
        caller.start()
    wait_for("calls", lambda: len(results) > 50)
    place.server.stop(PATIENCE).wait(PATIENCE)
    stop.set()
    for caller in callers:
        caller.join()
    codes = {call.code() for _, call in results}
    # What the server did not take any more had no other server. Without the gateway, too, grpcio's
    # servers cancel a call now and then that comes while they end.
    ended = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
    if not codes <= ended | {grpc.StatusCode.OK}:
        raise AssertionError(f"{codes}")
    _, error = place.unary("/test.Plain/Unary", b"x")
    status(error, grpc.StatusCode.UNAVAILABLE, "origin-unreachable")
    place.begin_server()
    wait_for("the return", lambda: place.unary("/test.Plain/Unary", b"x")[0] == b"x")


def a_check_is_allowed_once_for_a_signed_request(place):
    path, content = "/test.Signed/Unary", os.urandom(200_000)
    proof = place.proof(path, content)
    content = b"\0" + struct.pack(">I", len(content)) + content
    changed = content[:-1] + bytes([content[-1] ^ 1])
    same(place.check(path, changed, proof)[:2], (7, 403))
    code, denied, names = place.check(path, content, proof)
    same((code, denied), (0, 0))
    same("app-attest-verdict" in names, True)
    code, denied, names = place.check(path, content, proof)
    same((code, denied), (16, 401))
    same("www-authenticate" in names, True)


def calls_but_a_check_are_none(place):
    for path, request, code in [
        (CHECK, b"\x0b", grpc.StatusCode.INVALID_ARGUMENT),
        (CHECK, bytes(3 << 20), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (HEALTH, b"", grpc.StatusCode.UNIMPLEMENTED),
        ("/test.Plain/Unary", b"", grpc.StatusCode.UNIMPLEMENTED),
    ]:
        _, error = place.unary(path, request, channel=place.decisions)
        status(error, code)


CASES = [
    unary_calls_have_their_message_and_metadata,
    a_failed_call_has_the_servers_status_and_message,
    a_method_that_is_none_is_the_servers_answer,
    messages_larger_than_any_window_come_whole,
    streams_go_down_up_and_both_ways,
    each_message_of_a_stream_passes_before_the_next,
    many_calls_at_once_have_each_their_own_answer,
    a_deadline_ends_the_call_at_both_ends,
    the_gateways_own_deadline_is_one_of_the_call,
    a_call_that_the_client_cancels_ends_at_the_server,
    a_call_without_proof_is_refused,
    a_stream_without_proof_is_refused_before_its_end,
    a_signed_call_is_served_once,
    a_call_with_another_message_than_was_signed_is_refused,
    a_message_over_the_limit_is_refused,
    calls_of_a_device_over_its_rate_are_throttled,
    a_check_is_allowed_once_for_a_signed_request,
    calls_but_a_check_are_none,
    a_server_that_says_it_does_not_serve_gets_no_calls,
    a_server_that_ends_is_unavailable_and_comes_back,
]


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip())
        return 1
    folder = tempfile.mkdtemp(prefix="pg-")
    end_when_told(folder)
    wrong = 0
    try:
        place = Place(os.path.abspath(sys.argv[1]), folder)
        for case in CASES:
            claim = case.__name__.replace("_", " ")
            try:
                case(place)
            except Exception as error:  # One that fails must not hide the others.
                wrong += 1
                print(f"gRPC: {claim}: WRONG: {type(error).__name__}: {error}")
        place.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"gRPC by grpcio {grpc.__version__}: {len(CASES) - wrong} of {len(CASES)} cases held")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
