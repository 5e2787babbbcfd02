// Routes: what each of them signs, and whether its rule observes. The plan says it before the first request.
import { File, Shared, documentOf, retryAfter } from "./stack.mjs";
import { DAY, UNKNOWN, limits } from "./words.mjs";

/** `file.value` has what answers said, by the route's name. The route that was used last is the last one. */
export class Routes {
    constructor(client, path) {
        Object.assign(this, { client, file: new File(path), plan: null, etag: null, said: 0, due: 0, failures: 0 });
        this.fetching = new Shared(() => this.fetch());
    }

    /** Host, method and path. A segment that looks like an id is `*`. */
    name({ method, target }) {
        const segments = target.split("?")[0].split("/");
        const looksLikeID = (part) => /^([0-9]+|(?=.*[0-9])[0-9a-fA-F-]{8,}|.{25,})$/.test(part);
        return [this.client.host, method, segments.map((part) => looksLikeID(part) ? "*" : part).join("/")].join(" ");
    }

    /** What is known of the route. A request waits for the plan where nothing else says it. */
    async find(request) {
        if (this.client.hasPlan && this.client.now() >= this.due) this.fetching.start();
        if (!this.current(request) && !this.plan && this.fetching.task)
            await request.wait(limits.planWait, (seconds) => this.fetching.wait(seconds));
        return this.current(request);
    }

    /** What the plan or the last answer says, whichever came later. */
    current(request) {
        const name = this.name(request), known = this.file.value[name];
        if (known) { delete this.file.value[name]; this.file.value[name] = known; }  // the last one was used last
        if (!this.plan || known?.said >= this.said) return known;
        return { ...this.planned(request), observes: known?.observes ?? false, said: this.said };
    }

    /** Learns from an answer's parameters. `moved`: the proof was not where the rule looks for it. */
    learn(request, says, { observes = false, moved = false } = {}) {
        const known = this.current(request), old = known ?? UNKNOWN, words = (text) => text.split(" ").filter(Boolean);
        if (says.sign == undefined) return known;
        const route = { ...old, sign: words(says.sign), headers: words(says.headers ?? ""), observes,
            strict: says.counter == undefined,
            device: says.device == "token", said: this.client.now(), ...(moved ? { fields: {}, pointer: null } : {}) };
        if (says.accept != undefined) route.accept = words(says.accept);
        if (says.fields != undefined) route.fields = Object.fromEntries(words(says.fields).map((pair) => pair.split("=")));
        if (says.challenge_pointer != undefined) route.pointer = decodeURIComponent(says.challenge_pointer);
        if (`${route.sign};${route.headers}` != `${old.sign};${old.headers}`)
            this.due = Math.min(this.due, this.client.now() + limits.planDoubtAge);
        return this.change(request, route);
    }

    change(request, parts) {
        const route = { ...(this.current(request) ?? UNKNOWN), ...parts }, known = this.file.value, name = this.name(request);
        const isNew = JSON.stringify({ ...known[name], said: 0 }) != JSON.stringify({ ...route, said: 0 });
        delete known[name];
        known[name] = route;
        while (Object.keys(known).length > limits.routesLearned) delete known[Object.keys(known)[0]];
        if (isNew) this.file.save();
        return route;
    }

    planned({ method, target }) {
        const path = target.split("?")[0], host = this.client.host.toLowerCase().replace(/\.?(:[0-9]*)?$/, "");
        const isHost = (one) => one == "*" || one == host || one.startsWith("*.") && host.endsWith(one.slice(1));
        const rule = this.plan.rules.find((rule) => rule.methods.some((one) => one == "*" || one == method)
            && rule.hosts.some((one) => isHost(one.toLowerCase()))
            && rule.paths.some((one) => isPath(one, path))) ?? this.plan.unmatched ?? {};
        const { sign = [], headers = [], accept = [], fields = {}, device = false, challenge_pointer: pointer = null } = rule;
        return { ...UNKNOWN, sign, headers, accept, fields, device, pointer, strict: rule.counter == "strict" };
    }

    async fetch() {
        const answer = await this.client.call("/plan", undefined, "GET", this.etag ? [["If-None-Match", this.etag]] : []);
        const plan = documentOf(answer, { portcullis_plan: "number", rules: "list" }), now = this.client.now();
        if (plan?.portcullis_plan == 1 || answer?.status == 304) {
            const age = answer.fields["cache-control"]?.match(/max-age=([0-9]{1,9})/)?.[1];
            this.due = now + (age ? Math.min(Math.max(Number(age), 60), DAY) : limits.planUsualAge);
            this.failures = 0;
            if (plan) Object.assign(this, { plan, said: now, etag: answer.fields.etag });
        } else {
            const hold = Math.min(limits.planFailureHold * 2 ** this.failures, limits.planFailureHoldMax);
            this.due = now + (retryAfter(answer, now) ?? hold);
            this.failures = Math.min(this.failures + 1, 9);
        }
    }
}

export function isPath(pattern, path) {
    const words = pattern.replace(/^\//, "").split("/"), parts = path.replace(/^\//, "").split("/");
    const bytes = (text) => text.replace(/%([0-9a-fA-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
    for (const [at, word] of words.entries()) {
        if (word == "**") return true;
        if (at == parts.length || (word == "*" ? !parts[at] : bytes(word) != bytes(parts[at]))) return false;
    }
    return words.length == parts.length;
}
