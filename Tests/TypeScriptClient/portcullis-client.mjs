/**
 * A client of Portcullis on Node, to be read: Sources/client/docs/machine.md as a program.
 *
 * It signs an app's requests with a key that a device vouches for, and obeys what the gateway answers. Read
 * `Request.send` first, and what it calls. The other parts are in key.mjs, challenges.mjs and routes.mjs; words.mjs has
 * what they share, stack.mjs what every app has. One process uses a folder: Node can't lock a file, so there is no lease.
 * It runs as it is: types are in comments, since Node takes them out of TypeScript from version 22.18 on alone.
 */
import { createHmac } from "node:crypto";
import * as fs from "node:fs";
import { Challenges, Session } from "./challenges.mjs";
import { Key } from "./key.mjs";
import { Routes } from "./routes.mjs";
import { digestOf, exchange, parse, retryAfter, sleep, uptime, verdict, within } from "./stack.mjs";
import { MayHaveRun, TokenNeeded, USUAL, Unfit, limits } from "./words.mjs";

/** A call of the app: how often it was sent, how much longer it may wait. */
class Request {
    constructor(client, method, target, { fields = [], content = null, timeout = 60, route = null, needsProof = false } = {}) {
        Object.assign(this, { client, method, target, timeout, route, needsProof, unfit: null });
        this.content = content == null ? null : Buffer.from(content);
        this.fields = [...fields];
        Object.assign(this, { origin: client.gateway, redirects: 0 });
        if (!this.valuesOf("host").length) this.fields.unshift(["Host", client.host]);
        if (this.content || /^(POST|PUT|PATCH)$/.test(method))
            this.fields.push(["Content-Length", `${this.content?.length ?? 0}`]);
        this.left = Math.min(limits.proofWait, timeout);
        this.sent = { counted: 0, asked: 0, enrolling: 0, held: 0, "without-challenge": 0 };
        this.allowed = { counted: route ? limits.openingTries : limits.maximumAttempts,
            asked: Math.max(2, limits.maximumAttempts), enrolling: limits.unfinishedMax, held: limits.heldMax, "without-challenge": limits.maximumAttempts };
        this.unsigned = 0;  // times that the device has not signed it
        this.wasRefused = this.wasMended = this.asks = this.replacedKey = this.avoidsSession = false;
    }

    valuesOf(name) { return this.fields.filter(([known]) => known.toLowerCase() == name).map(([, value]) => value); }

    /** The answer that is the app's. Throws Unfit, MayHaveRun, TokenNeeded, or another error where no answer came. */
    async send() {
        let answer;
        while (this.sent.counted < this.allowed.counted) {
            const proof = await this.prove();
            if (++this.sent[proof.kind] > this.allowed[proof.kind]) break;
            answer = { ...await this.exchange(proof), unfit: this.unfit };
            if (this.follows(answer)) { this.sent[proof.kind]--; continue; }
            if (this.origin.host != this.client.gateway.host) break;
            if (!verdict(answer)) { this.client.advise(this, proof, answer); break; }
            if (!await this.goesAgain(proof, answer)) break;
        }
        return answer;
    }

    /** What `work` gives in this time, or in what all waits of the request have left together. */
    async wait(limit, work, least = 0) {
        const began = uptime(), seconds = Math.max(Math.min(limit, this.left), least);
        try { return await within(seconds, work(seconds)); } finally { this.left -= uptime() - began; }
    }

    async exchange(proof) {
        const { client } = this, headCame = () => client.turns.give(this);
        try {
            const fields = [...this.fields, ...proof.fields], options = { idle: this.timeout, headCame };
            const answer = await exchange(this.origin, this.method, this.target, fields, this.content, options);
            if (this.origin.host == client.host) client.challenges.keep([answer.fields["app-attest-challenge"]]);
            return answer;
        } finally {
            headCame();
            proof.session?.open.delete(proof.number);
        }
    }

    /** After a redirect (RFC 9110 §15.4) the request is the one for its target. Other origins get no proof. */
    follows({ status, fields: { location } }) {
        if (![301, 302, 303, 307, 308].includes(status) || !location || this.redirects++ >= limits.redirects) return false;
        const target = new URL(location, this.origin.origin + this.target);
        if (!/^https?:$/.test(target.protocol)) return false;
        if (status == 303 && this.method != "HEAD" || status < 303 && this.method == "POST")
            Object.assign(this, { method: "GET", content: null });
        const dropped = ["host", ...(target.host == this.origin.host ? [] : ["authorization", "cookie"]),
            ...(this.content ? [] : ["content-length", "content-type"])];
        this.fields = [["Host", target.host], ...this.fields.filter(([name]) => !dropped.includes(name.toLowerCase()))];
        this.origin = new URL(target.origin);
        this.target = target.pathname + target.search;
        return true;
    }

    /** Waits for what a proof takes. Without all of it, the request goes without a proof; `kind` says why. */
    async prove() {
        const { client } = this, route = this.route ?? await client.routes.find(this);
        const proof = { route, kind: "counted", fields: [], isMade: false, session: null, number: 0, token: null };
        const add = (name, value) => proof.fields.push([route.fields[name] ?? USUAL[name], value]);
        if (this.origin.host != client.host) return proof;
        if (!route || this.asks) return { ...proof, kind: "asked" };
        if (!route.sign.length) return proof;
        const values = this.signedValues(route);
        if (this.unfit && this.needsProof) throw new Unfit(this.unfit);
        if (this.unfit) return proof;
        const hastes = route.observes && !this.wasRefused;
        this.keyID = await this.wait(hastes ? 0 : limits.enrolmentWait, (seconds) => client.key.wait(seconds));
        if (!this.keyID) {
            const state = client.key.state();
            if (state == "unsupported" || client.key.record.device_failures >= 2) add("unsupported", "1");
            return { ...proof, kind: state == "unsupported" ? "counted" : state == "held" ? "held" : "enrolling" };
        }
        if (route.accept.includes("session") && client.hasSessions && !this.avoidsSession)
            [proof.session, proof.number] = await this.wait(hastes ? 0.001 : limits.sessionWait,
                (seconds) => client.session.take(this.keyID, seconds)) ?? [null, 0];
        if (proof.session) {
            const hmac = createHmac("sha256", proof.session.key).update(this.clientData(route, values, `${proof.number}`));
            proof.fields.push(["App-Attest-Session", proof.session.session], ["App-Attest-Sequence", `${proof.number}`],
                ["App-Attest-Signature", hmac.digest("base64")]);
            if (proof.session.accepts_key_id) proof.fields.push([USUAL.key_id, this.keyID]);
        } else {
            const take = () => this.wait(limits.challengeWait, (seconds) => client.challenges.take(seconds, hastes));
            let challenge = route.pointer == null ? undefined : member(this.content, route.pointer), ends = Infinity;
            if (!challenge && /challenge|content/.test(route.sign.join(" "))) {
                ({ text: challenge, ends } = await take() ?? {});
                if (!challenge) return { ...proof, kind: "without-challenge" };
            }
            await client.turns.take(this, route.strict || client.now() < route.strict_until);
            if (client.now() >= ends) challenge = (await take())?.text ?? challenge;  // it ended while others had their turn
            const data = this.clientData(route, values, challenge ?? "-");
            const keyID = this.keyID;
            const signing = () => client.key.sign(keyID, data);
            const assertion = await this.wait(limits.assertionWait, signing, limits.leastForDevice);
            if (!assertion) {
                if (client.key.record.id != keyID && ++this.unsigned < limits.signingTries) return this.prove();
                return { ...proof, fields: [[route.fields.unsupported ?? USUAL.unsupported, "1"]] };
            }
            if (challenge && route.pointer == null) add("challenge", challenge);
            add("key_id", keyID);
            add("assertion", assertion);
        }
        proof.isMade = true;
        if (this.content?.length && route.sign.includes("body")) proof.fields.push(["Content-Digest", digestOf(this.content)]);
        if (route.device) {
            const making = () => client.device.token().catch(() => null);
            proof.token = await this.wait(limits.deviceTokenWait, making, limits.leastForDevice);
            if (proof.token) proof.fields.push(["App-Attest-Device-Token", proof.token]);
        }
        return proof;
    }

    signedValues(route) {
        return route.headers.map((name) => {
            const [value, ...more] = this.valuesOf(name).map((value) => value.replace(/^[ \t]+|[ \t]+$/g, ""));
            if (more.length) this.unfit = `the signed field ${name} is there twice`;
            if (value && !/^[\t -~]*$/.test(value)) this.unfit = `the signed field ${name} is not ASCII`;
            return value == undefined ? name : `${name}: ${value}`;
        });
    }

    clientData({ sign }, values, line5) {
        const content = this.content ?? Buffer.alloc(0);
        if (sign[0] == "challenge-text") return Buffer.from(line5);
        if (sign[0] == "content") return content;
        return Buffer.from(["portcullis-request-v1", sign.includes("method") ? this.method : "-",
            sign.includes("target") ? this.target : "-", sign.includes("body") ? digestOf(content) : "-", line5, ...values,
            ""].join("\n"));
    }

    mayRunAgain() {
        return this.route || /^(GET|HEAD|OPTIONS|TRACE|PUT|DELETE)$/.test(this.method)
            || this.valuesOf("idempotency-key").some((value) => value.trim());
    }

    /** The table of "A request". */
    async goesAgain(proof, answer) {
        const { client } = this, { reason, step, says } = verdict(answer);
        this.wasRefused = true;
        const moved = proof.isMade && /^(assertion|challenge)-missing$/.test(reason);
        const route = this.route ?? client.routes.learn(this, says, { moved });
        if (proof.isMade && /^(counter-replayed|challenge-spent|session-replayed)$/.test(reason)) {
            if (reason == "counter-replayed" && !this.route)
                client.routes.change(this, { strict_until: client.now() + limits.strictTime });
            if (!this.mayRunAgain()) throw new MayHaveRun(answer);
        }
        if (step == "get-token") throw new TokenNeeded(answer, (says.tokens ?? "").split(" ").filter(Boolean));
        if (reason == "signature-mismatch" && proof.isMade) {
            const first = !this.wasMended;
            this.wasMended = true;
            this.asks = says.sign == undefined;
            return first && (this.asks || ["sign", "headers"].some((part) => `${route[part]}` != `${proof.route[part]}`));
        }
        if (reason == "device-token-missing" && !proof.token) return client.routes.change(this, { device: true });
        if (reason == "device-token-used") return true;
        if (reason == "assertion-malformed" && proof.session) return client.session.refused(this, proof, reason);
        if (step == "enrol" && proof.isMade) {
            client.key.lost(this.keyID);
            return !this.replacedKey && (this.replacedKey = true);
        }
        if (step == "retry-later") {
            const seconds = retryAfter(answer, client.now());
            if (seconds == undefined || seconds > Math.min(limits.retryWait, this.left)) return false;
            await this.wait(seconds + Math.random(), sleep);
            return true;
        }
        if (step != "sign-again") return false;
        if (/^challenge-(unknown|expired)$/.test(reason)) client.challenges.dropOlder();
        if (proof.session) client.session.refused(this, proof, reason);
        if (proof.isMade) return true;
        if (proof.kind == "asked") { this.asks = false; return route; }
        if (proof.kind == "enrolling") return this.left > 0;
        if (proof.kind == "without-challenge") return "app-attest-challenge" in answer.fields;
        const ends = (client.key.record.held ?? 0) - client.now();
        if (proof.kind != "held" || ends > Math.min(limits.enrolmentWait, this.left)) return false;
        await this.wait(Math.max(ends, 0), sleep);
        return true;
    }
}

/** The text at this place of the content (RFC 6901). */
function member(content, pointer) {
    try {
        const steps = pointer.split("/").slice(1).map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
        return steps.reduce((found, step) => found[step], JSON.parse(content));
    } catch { return undefined; }
}

/** How far assertions of the key may overtake each other: 64, and not at all after one for a strict counter. */
class Turns {
    constructor() { Object.assign(this, { number: 0, open: new Map(), waiting: [] }); }

    async take(request, isStrict) {
        const until = uptime() + limits.strictWait;
        for (let left; (left = Math.min(until, this.ends()) - uptime()) > 0;)
            await within(left, new Promise((done) => this.waiting.push(done)));
        this.open.set(request, { first: ++this.number + (isStrict ? 1 : 64), end: uptime() + limits.strictTurn });
    }

    /** Until when the next assertion waits. `open` has from which number on a request holds the others, and the end. */
    ends() {
        return Math.max(0, ...[...this.open.values()].filter(({ first }) => this.number + 1 >= first).map(({ end }) => end));
    }

    give(request) { if (this.open.delete(request)) this.waiting.splice(0).forEach((done) => done()); }
}

/** What an app calls. */
export class Client {
    constructor(gateway, device, folder, { plan = false, sessions = true, context = null, now = () => Date.now() / 1000 } = {}) {
        Object.assign(this, { gateway: new URL(gateway), device, context, now, endpoints: "/.well-known/app-attest" });
        const isSafe = this.gateway.protocol == "https:" || /^(127\.0\.0\.1|\[::1\]|localhost)$/.test(this.gateway.hostname);
        Object.assign(this, { host: this.gateway.host, hasPlan: plan && isSafe, hasSessions: sessions && isSafe });
        fs.mkdirSync(folder, { recursive: true });
        Object.assign(this, { key: new Key(this, folder + "/key"), routes: new Routes(this, folder + "/routes") });
        Object.assign(this, { challenges: new Challenges(this), session: new Session(this), turns: new Turns() });
    }

    request(method, target, more) { return new Request(this, method, target, more); }
    send(method, target, more) { return this.request(method, target, more).send(); }

    prewarm() {
        if (this.hasPlan) this.routes.fetching.start();
        this.key.wait(0);
        if (!this.challenges.kept.length && !this.challenges.calls.size) this.challenges.ask();
    }

    /** Forgets the key. The next one is bound to this context. */
    reset(context = null) { this.context = context; this.forget(); this.key.reset(); }
    signOut() { this.key.signOut(); }
    forget() { this.challenges.kept = []; this.session.kept = null; }

    /** The answer of an endpoint, if any. */
    async call(path, document, method = "POST", fields = []) {
        const content = document && JSON.stringify(document), more = content ? [["Content-Type", "application/json"],
            ["Content-Length", `${Buffer.byteLength(content)}`]] : [];
        const all = [["Host", this.host], ...fields, ...more], times = { idle: limits.idleTime, whole: limits.callTime };
        try { return await exchange(this.gateway, method, this.endpoints + path, all, content, times); } catch { return null; }
    }

    /** Does in the background what `App-Attest-Next` of a response says. */
    advise(request, proof, answer) {
        const [step, says] = parse(answer.fields["app-attest-next"])[0] ?? [];
        if (step != "enrol" && step != "sign-again") return;
        if (says.key && says.key != request.keyID) return;  // it is of an earlier answer, out of a cache
        this.routes.learn(request, says, { observes: true });
        if (step == "enrol" && says.key) this.key.lost(says.key);
        if (proof.session && says.error) this.session.refused(request, proof, says.error);
        this.key.wait(0);
    }
}
