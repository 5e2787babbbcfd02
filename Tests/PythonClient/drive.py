"""Drives the client through the proving ground: drive.py http://127.0.0.1:8099 [android].

Each client that a step starts is a process of its own, so that to stop it is to kill it.
"""
import json, multiprocessing, shutil, sys, tempfile, time, urllib.error, urllib.request

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
        self.url, self.package = start["device"], start.get("package", "com.example.shop")
        self.is_supported = start.get("supported", True)

    def token(self): return post(self.url + "/device-token", {})["token"]
    def make_key(self): return post(self.url + "/keys", {})["key_id"]

    def ask(self, call, key, digest):
        return post(self.url + call, {"key_id": key, "hash": portcullis.base64_of(digest)})

    def attest(self, key, digest): return key, key, {"attestation": self.ask("/attest", key, digest)["attestation"]}
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

def answer_of(client, step, number):
    def fill(text): return text.replace("{n}", str(number))

    fields, content = [(name, fill(value)) for name, value in step["fields"]], step.get("content")
    outcome, answer, more = "answered", None, {}
    content = None if content is None else content.encode()
    try: answer = client.send(step["method"], fill(step["path"]), fields, content)
    except portcullis.MayHaveRun as error: outcome, answer = "may-have-run", error.args[0]
    except portcullis.TokenNeeded as error: outcome, answer, more = "get-token", error.args[0], {"tokens": error.args[1]}
    except portcullis.Unfit as error: outcome, more = "unfit", {"error": str(error)}
    except Exception as error: outcome, more = "failed", {"error": f"{type(error).__name__}: {error}"}
    if answer and answer.unfit: outcome, more = "unfit", {"error": answer.unfit}
    if answer: more.update(status=answer.status, fields=answer.fields)
    return {"outcome": outcome, **more}

def run_client(pipe, start, device, folder, ahead):
    """One process of the app. It ends as a kill ends it."""
    client = portcullis.Client(start["gateway"], device(start), folder, start["plan"], start["sessions"],
                               start.get("context"), lambda: time.time() + ahead)
    result = {}
    while True:
        pipe.send(result)
        step, result = pipe.recv(), {}
        if step["do"] == "send":
            tasks = [portcullis.start(answer_of, client, step, number) for number in range(step.get("count", 1))]
            result = {"answers": [task.result(600) for task in tasks]}
        elif step["do"] == "clock": ahead += step["seconds"]
        elif step["do"] == "prewarm": client.prewarm()
        elif step["do"] == "reset": client.reset(step.get("context"))
        elif step["do"] == "sign-out": client.sign_out()

def main(server, platform="ios"):
    folder, ahead, processes = tempfile.mkdtemp(), 0, {}  # a folder within for each install
    device, system = Android if platform == "android" else Apple, multiprocessing.get_context("spawn")
    offers = ["clock", "plan", "sessions", "processes", "installs", "contexts", "device-tokens", "redirects", "reset",
              "prewarm"] + (["support"] if platform == "ios" else [])
    result = {"client": "python", "platform": platform, "offers": offers}

    def stop(number):
        if number in processes:
            process, _ = processes.pop(number)
            process.kill()
            process.join()

    def do(step):
        nonlocal ahead
        number = step.get("process", 1)
        if step["do"] == "clock": ahead += step["seconds"]
        if step["do"] in ("start", "stop"): stop(number)
        if step["do"] == "stop": return {}
        if step["do"] == "start":
            if step["state"] == "new":
                for other in list(processes): stop(other)
                shutil.rmtree(folder)
            install = f"{folder}/{number if step['state'] == 'another' else 0}"
            pipe, theirs = system.Pipe()
            process = system.Process(target=run_client, args=(theirs, step, device, install, ahead), daemon=True)
            process.start()
            theirs.close()
            processes[number] = process, pipe
            return pipe.recv()
        asked = list(processes) if step["do"] == "clock" else [number, *step.get("beside", [])]
        for one in asked: processes[one][1].send(step)
        results = [processes[one][1].recv() for one in asked]
        return {name: sum((found[name] for found in results), []) for found in results[:1] for name in found}

    while (step := post(server + "/next", result))["do"] != "end":
        try: result = do(step)
        except Exception as error: result = {"error": f"{type(error).__name__}: {error}"}
    for number in list(processes): stop(number)
    shutil.rmtree(folder, ignore_errors=True)
    return 1 if step["failed"] else 0

if __name__ == "__main__": sys.exit(main(*sys.argv[1:]))
