"""The client's side: requests by wrk, idle connections, uploads."""
import os
import re
import socket
import subprocess
import time

from failure import Failure
from gauges import cpu_seconds, memory_kib

# Sends the requests that were signed beforehand, each once; with none left it begins again, and
# what is refused then shows as an error.
SIGNED = """
local heads, number = {}, 0
function init()
  local first, count = tonumber(os.getenv("FIRST")), tonumber(os.getenv("COUNT"))
  local line = 0
  for text in io.lines(os.getenv("REQUESTS")) do
    line = line + 1
    if line > first then
      local key, assertion = text:match("^(%S+)\\t(%S+)")
      heads[#heads + 1] = "GET /verified HTTP/1.1\\r\\nHost: bench.test\\r\\nApp-Attest-Key-Id: "
        .. key .. "\\r\\nApp-Attest-Assertion: " .. assertion .. "\\r\\n\\r\\n"
    end
    if line >= first + count then break end
  end
end
function request()
  number = number % #heads + 1
  return heads[number]
end
"""

MILLISECONDS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


def signed_part(file, number, size):
    """The environment of SIGNED for the part with this number, from 0, of the requests."""
    return {"REQUESTS": file, "FIRST": str(number * size), "COUNT": str(size)}


def requests(pid, port, seconds, connections, script=None, env=None):
    """Sends small requests; gives CPU of the gateway per request, rate, and 99th percentile."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency"]
    if script:
        command += ["-s", script]
    command.append(f"http://127.0.0.1:{port}/")
    before = cpu_seconds(pid)
    env = {**os.environ, **(env or {})}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    used = cpu_seconds(pid) - before
    count = re.search(r"(\d+) requests in", done.stdout)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
    late = re.search(r"^\s+99%\s+([\d.]+)(us|ms|s|m)", done.stdout, re.MULTILINE)
    if not (count and rate and late) or int(count.group(1)) == 0:
        raise Failure(f"wrk: {done.stdout}{done.stderr}", "see what it says above")
    bad = re.search(r"Non-2xx.*: (\d+)|Socket errors: (.*)", done.stdout)
    if bad:
        raise Failure(f"requests failed: {bad.group(0)}", "run again on a machine that is idle")
    return {
        "cpu_us": used * 1e6 / int(count.group(1)),
        "rate": float(rate.group(1)),
        "p99_ms": float(late.group(1)) * MILLISECONDS[late.group(2)],
    }


def idle(pid, port, count):
    """Memory that a connection takes which has had one answer and waits."""
    held = []
    try:
        before = memory_kib(pid)
        for number in range(count):
            # From several addresses, so that ports do not run out.
            connection = socket.socket()
            connection.bind((f"127.0.1.{1 + number % 200}", 0))
            connection.connect(("127.0.0.1", port))
            held.append(connection)
            connection.sendall(b"GET / HTTP/1.1\r\nHost: bench.test\r\n\r\n")
            connection.recv(4096)
        time.sleep(0.5)
        return {"kib": (memory_kib(pid) - before) / count}
    finally:
        for connection in held:
            connection.close()


def upload(pid, port, file, size, proof):
    """Sends zeros, streamed; gives throughput, CPU and growth of the gateway."""
    key, assertion, digest = proof
    head = (
        f"PUT /upload HTTP/1.1\r\nHost: bench.test\r\nContent-Length: {size}\r\n"
        f"App-Attest-Key-Id: {key}\r\nApp-Attest-Assertion: {assertion}\r\n"
        f"Content-Digest: {digest}\r\n\r\n"
    ).encode()
    used, peak, start = cpu_seconds(pid), memory_kib(pid, "VmHWM"), time.monotonic()
    with socket.create_connection(("127.0.0.1", port)) as connection, open(file, "rb") as zeros:
        connection.settimeout(120)
        connection.sendall(head)
        connection.sendfile(zeros, 0, size)
        answer = b""
        while not answer.endswith(str(size).encode()):
            more = connection.recv(65536)
            if not more:
                break
            answer += more
    seconds = time.monotonic() - start
    if not answer.startswith(b"HTTP/1.1 200"):
        raise Failure(f"upload: {answer[:300]!r}", "run again on a machine that is idle")
    return {
        "mib_s": size / seconds / 2**20,
        "cpu_s_gib": (cpu_seconds(pid) - used) * 2**30 / size,
        "growth_mib": (memory_kib(pid, "VmHWM") - peak) / 1024,
    }
