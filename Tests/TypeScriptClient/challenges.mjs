// Challenges, and the session: what the gateway gave and was not used.
import { Shared, documentOf, retryAfter, uptime, verdict, within } from "./stack.mjs";
import { OPENING, limits } from "./words.mjs";

/** What the gateway gave and was not used, the newest last. */
export class Challenges {
    constructor(client) {
        Object.assign(this, { client, kept: [], used: [], life: limits.challengeLifetime, held: 0, fruitless: 0 });
        this.waiting = [];        // requests: what to call with a challenge, or with nothing
        this.calls = new Map();   // a number and the time: when a call began, and for how many
    }

    keep(texts) {
        const known = new Set([...this.used, ...this.kept.map(({ text }) => text)]), now = this.client.now();
        const fresh = texts.filter((text) => /^[A-Za-z0-9_-]{56}$/.test(text ?? "") && !known.has(text));
        this.kept.push(...fresh.map((text) => ({ text, ends: now + this.life - Math.min(this.life / 5, 10) })));
        this.kept.splice(0, this.kept.length - limits.challengesKept);
        while (this.waiting.length && this.kept.length) this.waiting.shift()(this.next());
        return fresh.length;
    }

    /** All but the newest, which came with the answer that said so. */
    dropOlder() { this.kept = this.kept.slice(-1); }

    next() {
        this.kept = this.kept.filter(({ ends }) => this.client.now() < ends);
        const one = this.kept.pop();
        if (one) this.used = [...this.used, one.text].slice(-limits.usedMax);
        return one;
    }

    /** The newest one, and when it ends, if the gateway gives one in time. */
    async take(seconds, observed) {
        const one = this.next();
        if (one || this.client.now() < this.held) return one;
        let done;
        const given = new Promise((resolve) => this.waiting.push(done = resolve));
        this.ask();
        if (observed) seconds = Math.min(seconds, [...this.calls.values()][0].began + limits.observedWait - uptime());
        const got = await within(seconds, given);
        this.waiting = this.waiting.filter((one) => one != done);
        return got;
    }

    /** Calls for as many as requests wait for and no call brings yet. */
    ask() {
        const coming = [...this.calls.values()].reduce((sum, call) => sum + call.count, 0);
        if (coming && this.waiting.length <= coming || this.calls.size >= limits.callsMax) return;
        if (this.client.now() < this.held) return;
        const count = Math.min(Math.max(this.waiting.length - coming, limits.challengesAsked), limits.countMax), key = Symbol();
        this.calls.set(key, { count, began: uptime() });
        this.client.call("/challenges", { purpose: "assertion", count }).then((answer) => {
            this.calls.delete(key);
            const good = documentOf(answer, { challenges: "list", expires_in: "number" });
            if (good) this.life = good.expires_in;
            if (good && this.keep(good.challenges)) { this.fruitless = 0; if (this.waiting.length) this.ask(); return; }
            this.fruitless = Math.min(this.fruitless + (good ? 1 : 0), limits.fruitlessMax);
            const held = good ? limits.fruitlessHold * 2 ** (this.fruitless - 1) : retryAfter(answer, this.client.now()) ?? 0;
            this.held = this.client.now() + Math.min(held, limits.challengeHoldMax);
            this.waiting.splice(0).forEach((done) => done());
        });
    }
}

/** One session at a time. `open` of it are the numbers of its requests that have no answer yet. */
export class Session {
    constructor(client) { Object.assign(this, { client, kept: null, held: 0, opening: new Shared(() => this.open()) }); }
    good(keyID) { return this.kept?.keyID == keyID && this.client.now() < this.kept.ends ? this.kept : null; }

    /** The session and the next number of it, if there is one in time. */
    async take(keyID, seconds) {
        if (!(this.client.now() < this.good(keyID)?.renewed) && this.client.now() >= this.held) {
            const opened = this.opening.wait(seconds);
            if (!this.good(keyID)) await opened;
        }
        const session = this.good(keyID);
        if (!session || session.next >= Math.min(session.next, ...session.open) + session.window) return null;
        session.open.add(session.next);
        return [session, session.next++];
    }

    async open() {
        const request = this.client.request("POST", this.client.endpoints + "/sessions", { route: OPENING });
        const answer = await request.send().catch(() => null), now = this.client.now(), word = verdict(answer);
        const good = documentOf(answer, { session: "string", secret: "string", expires_in: "number", window: "number" });
        if (good) {
            const life = good.expires_in, ends = now + life - Math.min(life / 10, 10);
            this.kept = { ...good, keyID: request.keyID, key: Buffer.from(good.secret, "base64"), next: 1, open: new Set(),
                renewed: now + life * 0.8, ends };
            return;
        }
        const passes = !word || [401, 429].includes(answer.status) || answer.status >= 500 || word.step == "retry-later";
        this.held = now + (passes ? retryAfter(answer, now) ?? limits.shortHold : limits.longHold);
    }

    /** After a refusal, or the `error` of an advice. The request is signed with the key then. */
    refused(request, proof, reason) {
        if (reason == "session-replayed") return true;
        request.avoidsSession = true;
        if (reason == "session-refused") this.client.routes.change(request, { accept: ["assertion"] });
        else if (this.kept == proof.session) this.kept = null;
        if (reason == "session-unknown" && proof.route.observes) this.client.challenges.dropOlder();
        return true;
    }
}
