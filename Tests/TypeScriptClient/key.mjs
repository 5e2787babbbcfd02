// The key: one for the install.
import { File, Shared, digestOf, documentOf, retryAfter, sha256, sleep, verdict, within } from "./stack.mjs";
import { DAY, limits } from "./words.mjs";

/** The install's key. The record says which, how far it came, and until when nothing is tried. */
export class Key {
    static BUSY = ["serverUnavailable", "transient", "locked"];
    constructor(client, path) {
        Object.assign(this, { client, file: new File(path), enrolment: new Shared(() => this.enrol()) });
        this.record = this.file.value;
        this.lull = 0;  // until then the device is asked for a signature once
    }
    now() { return this.client.now(); }
    set(parts) { Object.assign(this.record, parts); this.file.save(); }
    today(name) { return (this.record[name] ?? []).filter((time) => 0 <= this.now() - time && this.now() - time < DAY); }
    allows() { return this.today("keys").length < limits.keysPerDay; }

    state() {
        const left = (this.record.held ?? 0) - this.now(), longest = limits.retryAfterMax * (1 + limits.retrySpread);
        if (!this.record.proven && !this.client.device.isSupported) return "unsupported";
        return this.record.proven ? "proven" : 0 < left && left <= longest ? "held" : "enrolling";
    }

    /** The id of the proven key, if any. Where there is none and nothing holds it, one is enrolled. */
    async wait(seconds) {
        if (this.state() == "enrolling") await this.enrolment.wait(seconds);
        return this.record.proven ? this.record.id : undefined;
    }

    /** One step after the other, each on disk before the next one begins. `round` differs after a reset. */
    async enrol() {
        while (this.state() == "enrolling") {
            const round = this.round, then = await this.step();
            if (this.round == round) { then(); this.file.save(); }
        }
    }

    /** The table of "The key", from the top: does a step, and gives what changes then. */
    async step() {
        const { record, client: { device, context } } = this, now = this.now();
        if (record.document) return this.send();
        if (!this.allows() && !record.counted) return () => { record.held = Math.min(...this.today("keys")) + DAY; };
        if (device.makesKeyFirst && !record.key)
            return this.askDevice(() => device.makeKey(), (key) => Object.assign(record, { key, id: key, context }));
        if (!(record.challenge_until > now)) return this.askForChallenge();
        if (!record.counted) return () => Object.assign(record, { counted: true, keys: [...this.today("keys"), now] });
        const lines = context ? `portcullis-enrolment-v1\n${record.challenge}\n${digestOf(context)}\n` : record.challenge;
        return this.askDevice(() => device.attest(record.key, sha256(lines)), ({ key, id, ...made }) => Object.assign(record, {
            key, id, context, failures: 0, device_failures: 0, document: { ...made, key_id: id, challenge: record.challenge,
                ...(context ? { context: Buffer.from(context).toString("base64") } : {}) } }));
    }

    async askForChallenge() {
        const answer = await this.client.call("/challenges", { purpose: "enrolment", key_id: this.record.id });
        const good = documentOf(answer, { challenges: "list", expires_in: "number" });
        if (typeof good?.challenges[0] != "string" || good.expires_in < 1) return () => this.refused(answer);
        const [challenge] = good.challenges, challenge_until = this.now() + good.expires_in;
        return () => Object.assign(this.record, { challenge, challenge_until });
    }

    async send() {
        const answer = await this.client.call("/keys", this.record.document);
        if (!documentOf(answer, { key_id: "string" })) return () => this.refused(answer);
        return () => Object.assign(this.record, { document: undefined, proven: true, failures: 0 });
    }

    /** After a call without a good answer. Without any: the gateway was not reached. */
    refused(answer) {
        const word = verdict(answer);
        let seconds = retryAfter(answer, this.now());
        if (word?.step == "enrol" && this.record.document) return this.lose();
        const stays = word && word.step != "retry-later" && answer.status < 500 && answer.status != 429;
        if (stays) seconds ??= limits.enrolmentDelayMax;
        if (seconds == undefined) return this.delay();
        this.record.failures = (this.record.failures ?? 0) + 1;
        seconds = Math.min(Math.max(seconds, 0.5), limits.retryAfterMax);
        this.record.held = this.now() + seconds * (1 + limits.retrySpread * Math.random());
    }

    async askDevice(work, then) {
        try {
            const made = await within(limits.serviceWait, work());
            return () => made ? then(made) : this.delay();
        } catch (error) { return () => this.deviceFailed(error.message); }
    }

    deviceFailed(word) {
        const { record } = this;
        if (!this.client.device.makesKeyFirst && record.counted) {  // none was made
            record.counted = false;
            record.keys.pop();
        }
        if (Key.BUSY.includes(word)) return this.delay();
        record.device_failures = (record.device_failures ?? 0) + 1;
        if (word == "invalidKey") return this.lose();
        if (word == "unknownSystemFailure" && record.key) {
            if (!record.fails) { record.fails = true; return this.delay(); }
            if (this.today("unexplained").length) {  // another key was tried today
                record.held = this.now() + limits.unexplainedDelay * (0.5 + Math.random() / 2);
                return;
            }
            record.unexplained = [this.now()];
        }
        this.forget();
        this.delay();
    }

    delay(failures = this.record.failures = (this.record.failures ?? 0) + 1) {
        const longest = Math.min(limits.enrolmentDelay * 2 ** (failures - 1), limits.enrolmentDelayMax);
        this.record.held = this.now() + longest * (0.5 + Math.random() / 2);
    }

    lose() {
        const before = this.today("lost");
        this.record.lost = [...before, this.now()];
        this.forget();
        if (before.length) this.delay(3 + before.length);
    }

    forget() {
        this.round = Math.random();
        for (const name of ["key", "id", "challenge", "challenge_until", "counted", "document", "proven", "fails",
            "context", "counter", "refusals"]) delete this.record[name];
    }

    lost(id) { if (this.record.proven && this.record.id == id) { this.lose(); this.file.save(); } }
    reset() { if (this.allows() || this.record.context) { this.forget(); this.file.save(); } }
    signOut() { if (!this.record.proven && this.record.context) { this.forget(); this.file.save(); } }

    /** The assertion, if the device makes one. */
    async sign(id, data) {
        const tries = this.now() < this.lull ? 1 : limits.signingTriesMax;
        let word = "";
        for (let tried = 1; tried <= tries; tried++) {
            if (!this.record.proven || this.record.id != id) return;
            this.set({ counter: (this.record.counter ?? 0) + 1 });
            try {
                const made = await this.client.device.sign(this.record.key, this.record.counter, sha256(data));
                if (this.record.refusals) this.set({ refusals: 0 });
                return made;
            } catch (error) { word = error.message; }
            if (word == "invalidKey" || word == "missing") return this.lost(id);
            if (!Key.BUSY.includes(word) && tried >= limits.signingTries) break;
            if (tried < tries) await sleep(limits.signingPause * 2 ** (tried - 1) * (0.5 + Math.random() / 2));
        }
        if (Key.BUSY.includes(word)) { this.lull = this.now() + limits.lull; return; }
        this.set({ refusals: (this.record.refusals ?? 0) + 1 });
        if (this.record.refusals > limits.unfitMax && this.allows() && !this.today("refused").length) {
            this.record.refused = [this.now()];
            this.lost(id);
        }
    }
}
