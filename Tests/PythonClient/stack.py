"""What an app has without Portcullis: tasks, a file on disk, and an HTTP stack."""
import concurrent.futures, contextlib, fcntl, http.client, http.cookiejar, json, os, re, threading

IDLE_TIME = 60         # seconds without a byte of an answer
ANSWER_MAX = 32 << 20  # bytes of an answer

def start(work, *arguments):
    """A task: its `result(seconds)` waits for it, or raises TimeoutError. It goes on when nothing waits any more."""
    task = concurrent.futures.Future()

    def run():
        try: task.set_result(work(*arguments))
        except Exception as error: task.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return task

class Shared:
    """One task at a time for all who ask."""
    def __init__(self, work): self.work, self.lock, self.task = work, threading.Lock(), None

    def start(self):
        with self.lock:
            if not self.task or self.task.done(): self.task = start(self.work)
            return self.task

    def is_running(self): return bool(self.task) and not self.task.done()
    def wait(self, seconds): concurrent.futures.wait([self.start()], max(seconds, 0))

class File:
    """A JSON object on disk. Processes and threads take turns to change it."""
    def __init__(self, path): self.path = path

    def read(self):
        try:
            with open(self.path) as file: value = json.load(file)
            return value if isinstance(value, dict) else {}
        except (OSError, ValueError): return {}

    @contextlib.contextmanager
    def change(self):
        with open(self.path + ".lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = self.read()
            yield (value := json.loads(json.dumps(before)))
            if value == before: return
            with open(self.path + ".new", "w") as file:
                json.dump(value, file)
                file.flush()
                os.fsync(file.fileno())
            os.rename(self.path + ".new", self.path)

class Response:
    """An answer. Several fields of one name are one, separated by commas (RFC 9110 §5.3)."""
    def __init__(self, status, pairs, content):
        self.status, self.content, self.fields = status, content, {}
        for name, value in pairs:
            earlier = [self.fields[name.lower()]] if name.lower() in self.fields else []
            self.fields[name.lower()] = ", ".join([*earlier, value])

    def retry_after(self, now):
        """Seconds; None where the field is absent or can't be read (RFC 9110 §10.2.3)."""
        text = self.fields.get("retry-after", "").strip()
        if re.fullmatch("[0-9]{1,9}", text): return int(text)
        until, sent = map(http.cookiejar.http2time, (text, self.fields.get("date", "")))
        return None if until is None else max(0, until - (now if sent is None else sent))

def parse(field):
    """The words of `word;name=value` and of `Scheme name="value", …`, each with its parameters."""
    found = []
    pattern = r'([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,;"]+))|([^\s,;="]+)'
    for name, quoted, plain, word in re.findall(pattern, field):
        if word: found.append((word, {}))
        elif found: found[-1][1].setdefault(name.lower(), plain or re.sub(r"\\(.)", r"\1", quoted))
    return found

def authority(url):
    """The value of `Host`: with the port where it is not the scheme's."""
    name = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    return name if url.port in (None, {"http": 80, "https": 443}[url.scheme]) else f"{name}:{url.port}"

def exchange(origin, method, target, fields, content, idle=IDLE_TIME, whole=None, head_came=lambda: None):
    """One request on a connection of its own, with these fields and no other. `whole` limits all of its time."""
    kind = http.client.HTTPSConnection if origin.scheme == "https" else http.client.HTTPConnection
    connection = kind(origin.hostname, origin.port, timeout=idle)
    timer = threading.Timer(whole or 0, lambda: connection.sock and connection.sock.shutdown(2))
    try:
        if whole: timer.start()
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in fields: connection.putheader(name, value.encode())
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the answer may be there all the same
            connection.endheaders(content or None)
        response = connection.getresponse()
        head_came()
        read = response.read(ANSWER_MAX + 1)
        if len(read) > ANSWER_MAX: raise ConnectionError("the answer is too long")
        return Response(response.status, response.getheaders(), read)
    except http.client.HTTPException as error: raise ConnectionError(f"no answer: {error!r}") from error
    finally:
        timer.cancel()
        connection.close()
