// What an app has without Portcullis: hashes, waits, a file on disk, and an HTTP stack; and how an answer is read.
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import * as http from "node:http";
import * as https from "node:https";

/** Bytes of an answer. */
const ANSWER_MAX = 32 << 20;

export const sha256 = (data) => createHash("sha256").update(data).digest();
export const digestOf = (data) => `sha-256=:${sha256(data).toString("base64")}:`;
export const uptime = () => performance.now() / 1000;
export const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

/** What the work gives, or `undefined` after so many seconds. The work goes on. */
export async function within(seconds, work) {
    let timer;
    const late = new Promise((done) => { timer = setTimeout(done, Math.max(seconds, 0) * 1000); });
    try { return await Promise.race([work, late]); } finally { clearTimeout(timer); }
}

/** Work that is done once at a time for all who ask. */
export class Shared {
    constructor(work) { this.work = work; this.task = null; }
    start() { return this.task ??= this.work().finally(() => { this.task = null; }); }
    wait(seconds) { return within(seconds, this.start().catch(() => {})); }
}

/** A JSON object on disk. It is there when `save` returns. */
export class File {
    constructor(path) {
        this.path = path;
        try { this.value = JSON.parse(fs.readFileSync(path, "utf8")); } catch { this.value = {}; }
    }

    save() {
        fs.writeFileSync(this.path + ".new", JSON.stringify(this.value), { flush: true });
        fs.renameSync(this.path + ".new", this.path);
    }
}

/** The words of `word;name=value` and of `Scheme name="value", …`, each with its parameters. */
export function parse(field = "") {
    const found = [];
    const pattern = /([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,;"]+))|([^\s,;="]+)/g;
    for (const [, name, quoted, plain, word] of field.matchAll(pattern)) {
        if (word) found.push([word, {}]);
        else if (found.length) found.at(-1)[1][name.toLowerCase()] ??= plain ?? quoted.replace(/\\(.)/g, "$1");
    }
    return found;
}

/** The gateway's reason, `next` and parameters; null where the answer is not the gateway's. */
export function verdict(answer) {
    const says = parse(answer?.fields["www-authenticate"]).find(([word]) => word.toLowerCase() == "appattest")?.[1];
    const error = parse(answer?.fields["app-attest-error"])[0];
    if (!answer || "age" in answer.fields || !(error || answer.status == 401 && says)) return null;
    return { reason: error ? error[0] : says.error ?? "", step: error ? error[1].next : says.next, says: says ?? {} };
}

/** What a good answer of an endpoint holds, where each member has the type that is named. */
export function documentOf(answer, members) {
    if (!answer || answer.status < 200 || answer.status > 299 || "age" in answer.fields) return null;
    try {
        const found = JSON.parse(answer.content);
        const fits = ([name, type]) => type == "list" ? Array.isArray(found[name]) : typeof found[name] == type;
        return Object.entries(members).every(fits) ? found : null;
    } catch { return null; }
}

/** Seconds; `undefined` where the field is absent or can't be read (RFC 9110 §10.2.3). */
export function retryAfter(answer, now) {
    const text = answer?.fields["retry-after"]?.trim() ?? "";
    const forms = [/^\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/, /^\w{6,9}, \d\d-\w{3}-\d\d [\d:]{8} GMT$/,
        /^\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}$/];
    const date = (text) => forms.some((form) => form.test(text)) ? Date.parse(text.endsWith("GMT") ? text : `${text} GMT`) / 1000 : NaN;
    if (/^[0-9]{1,9}$/.test(text)) return Number(text);
    const until = date(text), sent = date(answer?.fields.date ?? "");
    return Number.isNaN(until) ? undefined : Math.max(0, until - (Number.isNaN(sent) ? now : sent));
}

/** One request on a connection of its own. `idle` is for the time without a byte, `whole` for all of it. */
export function exchange(url, method, target, fields, content, { idle = 60, whole = 0, headCame = () => {} } = {}) {
    return new Promise((resolve, reject) => {
        const headers = fields.flatMap(([name, value]) => [name, Buffer.from(value).toString("latin1")]);
        const options = { method, path: target, headers, agent: false, setHost: false, timeout: idle * 1000 };
        const request = (url.protocol == "https:" ? https : http).request(url, options);
        const timer = whole && setTimeout(() => request.destroy(new Error("no answer in time")), whole * 1000);
        request.on("timeout", () => request.destroy(new Error("no byte in time")));
        request.on("error", (error) => { clearTimeout(timer); reject(error); });
        request.on("response", async (response) => {
            headCame();
            try {
                const parts = [];
                let length = 0;
                for await (const part of response) {
                    parts.push(part);
                    if ((length += part.length) > ANSWER_MAX) throw new Error("the answer is too long");
                }
                const joined = Object.entries(response.headersDistinct).map(([name, values]) => [name, values.join(", ")]);
                const content = Buffer.concat(parts).toString();
                resolve({ status: response.statusCode, fields: Object.fromEntries(joined), content });
            } catch (error) {
                request.destroy();
                reject(error);
            } finally { clearTimeout(timer); }
        });
        request.end(content ?? undefined);
    });
}
