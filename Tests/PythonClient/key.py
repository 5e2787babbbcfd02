"""The key: one for the install and all its processes."""
import contextlib, hashlib, json, os, random, time
from stack import File, Shared, start
from words import DeviceError, Limits, base64_of, digest_of, document, verdict

class Key:
    """The install's key, for all processes. The record says which, how far it came, until when nothing is tried."""
    BUSY = ("serverUnavailable", "transient", "locked")

    def __init__(self, client, path):
        self.client, self.now, self.file, self.enrolment = client, client.now, File(path), Shared(self.enrol)
        self.lull = 0  # until then the device is asked for a signature once

    def state(self, record):
        if record.get("proven"): return "proven"
        if not self.client.device.is_supported: return "unsupported"
        longest = Limits.retry_after_max * (1 + Limits.retry_spread)
        return "held" if 0 < record.get("held", 0) - self.now() <= longest else "enrolling"

    def wait(self, seconds):
        """The id of the proven key, or None. Where there is none and nothing holds it, one is enrolled."""
        if self.state(self.file.read()) == "enrolling": self.enrolment.wait(seconds)
        record = self.file.read()
        return record["id"] if record.get("proven") else None

    def enrol(self):
        """One step after the other. What a step changes is on disk before the next one begins."""
        while self.state(self.file.read()) == "enrolling":
            lease = {"process": os.getpid(), "name": random.random(), "until": self.now() + Limits.lease}
            with self.file.change() as record:
                if not self.is_leased(record): record["lease"] = lease
                changed = json.loads(json.dumps(record))
            if changed["lease"] != lease:
                time.sleep(Limits.lease_look * (0.5 + random.random()))
                continue
            self.step(changed)
            with self.file.change() as record:
                if record.get("lease") == lease:  # a reset ends it, and another process when its time is over
                    record.clear()
                    record.update((name, value) for name, value in changed.items() if name != "lease")

    def is_leased(self, record):
        """Whether another process that lives has a lease. One that is too long is of another clock."""
        with contextlib.suppress(ProcessLookupError, KeyError):
            os.kill(record["lease"]["process"], 0)  # fails where there is no such process, and sends it nothing
            mine = record["lease"]["process"] == os.getpid()  # this process enrols once at a time: it has ended
            return not mine and 0 < record["lease"]["until"] - self.now() <= Limits.lease
        return False

    def step(self, record):
        """The table of "The key", from the top. An Android key is made when its challenge is there."""
        device, now, allowed = self.client.device, self.now(), len(self.today(record, "keys")) < Limits.keys_per_day
        if "document" in record: self.send(record)
        elif not allowed and not record.get("counted"): record["held"] = min(self.today(record, "keys")) + 86400
        elif device.makes_key_first and "key" not in record: self.ask_device(record, self.make)
        elif record.get("challenge_until", 0) <= now: self.ask_for_challenge(record)
        elif not record.get("counted"): record.update(counted=True, keys=[*self.today(record, "keys"), now])
        else: self.ask_device(record, self.attest)

    def make(self, record):
        record["key"] = record["id"] = start(self.client.device.make_key).result(Limits.service_wait)
        record["context"] = self.client.context

    def ask_for_challenge(self, record):
        question = {"purpose": "enrolment"} | ({"key_id": record["id"]} if "id" in record else {})
        answer = self.client.call("/challenges", question)
        good = document(answer, challenges=list, expires_in=(int, float))
        if not good or not isinstance(next(iter(good["challenges"]), None), str) or good["expires_in"] < 1:
            return self.refused(record, answer)
        record.update(challenge=good["challenges"][0], challenge_until=self.now() + good["expires_in"])

    def attest(self, record):
        lines, context = record["challenge"], (self.client.context or "").encode()
        if context: lines = f"portcullis-enrolment-v1\n{lines}\n{digest_of(context)}\n"
        attesting = start(self.client.device.attest, record.get("key"), hashlib.sha256(lines.encode()).digest())
        record["key"], record["id"], made = attesting.result(Limits.service_wait)
        record["document"] = {**made, "key_id": record["id"], "challenge": record["challenge"]}
        if context: record["document"]["context"] = base64_of(context)
        record.update(context=self.client.context, failures=0, device_failures=0)

    def send(self, record):
        answer = self.client.call("/keys", record["document"])
        if not document(answer, key_id=str): return self.refused(record, answer)
        del record["document"]
        record.update(proven=True, failures=0)

    def refused(self, record, answer):
        """After a call that had no good answer; `answer` is None where the gateway was not reached."""
        reason, step, _ = verdict(answer) if answer else (None, None, None)
        seconds = answer.retry_after(self.now()) if answer else None
        if step == "enrol" and "document" in record: return self.lose(record)
        stays = reason is not None and step != "retry-later" and answer.status < 500 and answer.status != 429
        if seconds is None and stays: seconds = Limits.enrolment_delay_max
        if seconds is None: return self.delay(record)
        record["failures"] = record.get("failures", 0) + 1
        seconds = min(max(seconds, 0.5), Limits.retry_after_max)
        record["held"] = self.now() + seconds * (1 + Limits.retry_spread * random.random())

    def ask_device(self, record, work):
        try: return work(record)
        except TimeoutError: return self.delay(record)
        except DeviceError as error: word = str(error)
        if not self.client.device.makes_key_first and record.pop("counted", False): record["keys"].pop()  # none was made
        if word in self.BUSY: return self.delay(record)
        record["device_failures"] = record.get("device_failures", 0) + 1
        if word == "invalidKey": return self.lose(record)
        if word == "unknownSystemFailure" and "key" in record:
            if not record.get("fails"):
                record["fails"] = True
                return self.delay(record)
            if self.today(record, "unexplained"):  # another key was tried today
                record["held"] = self.now() + Limits.unexplained_delay * (0.5 + random.random() / 2)
                return
            record["unexplained"] = [self.now()]
        self.forget(record)
        self.delay(record)

    def delay(self, record, failures=None):
        if failures is None: failures = record["failures"] = record.get("failures", 0) + 1
        longest = min(Limits.enrolment_delay * 2 ** min(failures - 1, 20), Limits.enrolment_delay_max)
        record["held"] = self.now() + longest * (0.5 + random.random() / 2)

    def lose(self, record):
        before = self.today(record, "lost")
        record["lost"] = [*before, self.now()]
        self.forget(record)
        if before: self.delay(record, 3 + len(before))

    def forget(self, record):
        for name in ("key", "id", "challenge", "challenge_until", "counted", "document", "proven", "fails", "context",
                     "counter", "refusals", "lease"): record.pop(name, None)

    def today(self, record, name): return [time for time in record.get(name, []) if 0 <= self.now() - time < 86400]

    def lost(self, key_id):
        with self.file.change() as record:
            if record.get("proven") and record["id"] == key_id: self.lose(record)

    def reset(self):
        with self.file.change() as record:
            if len(self.today(record, "keys")) < Limits.keys_per_day or record.get("context"): self.forget(record)

    def sign_out(self):
        with self.file.change() as record:
            if not record.get("proven") and record.get("context"): self.forget(record)

    def sign(self, key_id, data):
        """The assertion. None where the device makes none."""
        tries = 1 if self.now() < self.lull else Limits.signing_tries_max
        for tried in range(1, tries + 1):
            with self.file.change() as record:
                if not record.get("proven") or record["id"] != key_id: return None
                counts = not self.client.device.makes_key_first  # Apple's hardware counts itself
                record["counter"] = record.get("counter", 0) + counts
            try:
                made = self.client.device.sign(record["key"], record["counter"], hashlib.sha256(data).digest())
                with self.file.change() as record: record.pop("refusals", None)
                return made
            except DeviceError as error: word = str(error)
            if word in ("invalidKey", "missing"): return self.lost(key_id)
            if word not in self.BUSY and tried >= Limits.signing_tries: break
            if tried < tries: time.sleep(Limits.signing_pause * 2 ** (tried - 1) * (0.5 + random.random() / 2))
        if word in self.BUSY:
            self.lull = self.now() + Limits.lull
            return None
        with self.file.change() as record:
            record["refusals"] = record.get("refusals", 0) + 1
            allowed = len(self.today(record, "keys")) < Limits.keys_per_day and not self.today(record, "refused")
            if record["refusals"] > Limits.unfit_max and allowed:
                record["refused"] = [self.now()]
                self.lose(record)

