"""Drives the client through the proving ground: drive.py http://127.0.0.1:8099 [android].

Each client is a process of its own, so that to stop it is to kill it.
"""
import base64, json, multiprocessing, sys, tempfile, time, urllib.error, urllib.request

import portcullis_client as portcullis

def post(url, value):
    request = urllib.request.Request(url, json.dumps(value).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer: return json.load(answer)
    except urllib.error.HTTPError as error: raise portcullis.DeviceError(json.load(error)["error"]) from None
    except OSError as error: raise portcullis.DeviceError(f"no answer: {error}") from None

class Apple:
    makes_key_first = True

    def __init__(self, start):
        self.url, self.package, self.is_supported = start["device"], start["package"], start["supported"]

    def token(self): return post(self.url + "/device-token", {})["token"]
    def make_key(self): return post(self.url + "/keys", {})["key_id"]

    def ask(self, call, key, digest):
        return post(self.url + call, {"key_id": key, "hash": portcullis.base64_of(digest)})

    def attest(self, key, digest): return key, key, self.ask("/attest", key, digest)
    def sign(self, key, counter, digest): return self.ask("/assert", key, digest)["assertion"]

class Android(Apple):
    """A key is made for its challenge (Sources/client/docs/android.md). The app counts the signatures."""
    makes_key_first = False

    def attest(self, _, digest):
        made = post(self.url + "/keys", {"challenge": portcullis.base64_of(digest)})
        return made["key"], made["key_id"], {"platform": "android", "chain": made["chain"]}

    def sign(self, key, counter, digest):
        lines = f"portcullis-key-v1\n{self.package}\n{counter}\n{portcullis.base64_of(digest)}\n"
        made = post(self.url + "/sign", {"key": key, "message": portcullis.base64_of(lines.encode())})["signature"]
        return f"v1.{counter}." + made.replace("+", "-").replace("/", "_").rstrip("=")

def answer_of(client, request):
    outcome, answer, more = "answered", None, {}
    content = base64.b64decode(request["content"]) if "content" in request else None
    try: answer = client.send(request["method"], request["path"], request["fields"], content)
    except portcullis.MayHaveRun as error: outcome, answer = "may-have-run", error.args[0]
    except portcullis.TokenNeeded as error:
        outcome, answer, more = "get-token", error.args[0], {"tokens": error.args[1]}
    except Exception as error: outcome, more = "failed", {"error": f"{type(error).__name__}: {error}"}
    if answer and answer.unfit: outcome = "unfit"
    if answer: more |= {"status": answer.status, "fields": answer.fields}
    return {"outcome": outcome, **more}

def run_client(pipe, start, device, folder):
    """One process of the app, until it is killed."""
    ahead = start["ahead"]
    client = portcullis.Client(start["gateway"], device(start), f"{folder}/{start['record']}", start["plan"],
                               start["sessions"], start.get("context"), lambda: time.time() + ahead)
    pipe.send({})
    while step := pipe.recv():
        result = {}
        if step["do"] == "send":
            tasks = [portcullis.start(answer_of, client, request) for request in step["requests"]
                     if request["process"] == start["process"]]
            result = {"answers": [task.result(600) for task in tasks]}
        elif step["do"] == "clock": ahead = step["ahead"]
        elif step["do"] == "prewarm": client.prewarm()
        elif step["do"] == "reset": client.reset(step.get("context"))
        elif step["do"] == "sign-out": client.sign_out()
        pipe.send(result)

def do(step, device, folder, clients, system=multiprocessing.get_context("spawn")):
    number = step["process"]
    if step["do"] == "start":
        pipe, theirs = system.Pipe()
        process = system.Process(target=run_client, args=(theirs, step, device, folder), daemon=True)
        process.start()
        clients[number] = process, pipe
        return pipe.recv()
    if step["do"] == "stop":
        process, _ = clients.pop(number)
        process.kill()
        return process.join()
    asked = {request["process"] for request in step.get("requests", [])} or {number}
    for one in asked: clients[one][1].send(step)
    results = [clients[one][1].recv() for one in asked]
    return {"answers": [answer for result in results for answer in result.get("answers", [])]}

def main(server, platform="ios"):
    offers = ["clock", "plan", "sessions", "processes", "installs", "contexts", "device-tokens", "redirects", "reset",
              "prewarm"] + (["support"] if platform == "ios" else [])
    result, clients = {"client": "python", "platform": platform, "offers": offers}, {}
    with tempfile.TemporaryDirectory() as folder:
        while (step := post(server + "/next", result))["do"] != "end":
            try: result = do(step, Android if platform == "android" else Apple, folder, clients) or {}
            except Exception as error: result = {"error": f"{type(error).__name__}: {error}"}
    return 1 if step["failed"] else 0

if __name__ == "__main__": sys.exit(main(*sys.argv[1:]))
