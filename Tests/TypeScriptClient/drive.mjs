/** Drives the client through the proving ground: node drive.mjs http://127.0.0.1:8099 [android] */
import * as fs from "node:fs";
import * as http from "node:http";
import * as os from "node:os";
import * as path from "node:path";
import { Client } from "./portcullis-client.mjs";
import { DeviceError, MayHaveRun, TokenNeeded } from "./words.mjs";

/** Not by `fetch`, which ends a call after five minutes, and a step may take ten. */
function post(url, value) {
    return new Promise((resolve, reject) => {
        const request = http.request(url, { method: "POST", agent: false }, async (answer) => {
            let text = "";
            for await (const part of answer) text += part;
            const found = JSON.parse(text);
            answer.statusCode == 200 ? resolve(found) : reject(new DeviceError(found.error));
        });
        request.on("error", reject);
        request.end(JSON.stringify(value));
    });
}

class Apple {
    makesKeyFirst = true;
    constructor(start) {
        Object.assign(this, { url: start.device, package: start.package, isSupported: start.supported });
    }
    async token() { return (await post(this.url + "/device-token", {})).token; }
    async makeKey() { return (await post(this.url + "/keys", {})).key_id; }
    ask(call, key, hash) { return post(this.url + call, { key_id: key, hash: hash.toString("base64") }); }
    async attest(key, hash) { return { key, id: key, ...await this.ask("/attest", key, hash) }; }
    async sign(key, counter, hash) { return (await this.ask("/assert", key, hash)).assertion; }
}

/** A key is made for its challenge (Sources/client/docs/android.md). The app counts the signatures. */
class Android extends Apple {
    makesKeyFirst = false;
    async attest(_, hash) {
        const { key, key_id, chain } = await post(this.url + "/keys", { challenge: hash.toString("base64") });
        return { key, id: key_id, platform: "android", chain };
    }
    async sign(key, counter, hash) {
        const lines = `portcullis-key-v1\n${this.package}\n${counter}\n${hash.toString("base64")}\n`;
        const { signature } = await post(this.url + "/sign", { key, message: Buffer.from(lines).toString("base64") });
        return `v1.${counter}.${Buffer.from(signature, "base64").toString("base64url")}`;
    }
}

async function answerOf(client, { method, path: target, fields, content }) {
    const outcomes = [[MayHaveRun, "may-have-run"], [TokenNeeded, "get-token"]];
    try {
        const bytes = content == undefined ? null : Buffer.from(content, "base64");
        const { status, fields: got, unfit } = await client.send(method, target, { fields, content: bytes });
        return { outcome: unfit ? "unfit" : "answered", status, fields: got };
    } catch (error) {
        const outcome = outcomes.find(([kind]) => error instanceof kind)?.[1] ?? "failed";
        const { status, fields } = error.answer ?? {};
        return { outcome, status, fields, tokens: error.tokens, error: error.message };
    }
}

const [server, platform = "ios"] = process.argv.slice(2);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "client-"));
/** By number. They share this process, so two can't share a record, and one that is stopped is forgotten. */
const clients = new Map();

/** What the driver does for each step; `end` is none of them. */
const deeds = {
    start({ process: number, gateway, device, record, ahead, plan, sessions, context, ...more }) {
        const phone = new (platform == "android" ? Android : Apple)({ device, ...more }), clock = { ahead };
        const now = () => Date.now() / 1000 + clock.ahead, options = { plan, sessions, context, now };
        clients.set(number, { clock, client: new Client(gateway, phone, path.join(folder, record), options) });
    },
    async send({ requests }) {
        return { answers: await Promise.all(requests.map((one) => answerOf(clients.get(one.process).client, one))) };
    },
    clock({ process: number, ahead }) { clients.get(number).clock.ahead = ahead; },
    prewarm({ process: number }) { clients.get(number).client.prewarm(); },
    reset({ process: number, context }) { clients.get(number).client.reset(context); },
    "sign-out"({ process: number }) { clients.get(number).client.signOut(); },
    stop({ process: number }) { clients.delete(number); },
};

const offers = ["clock", "plan", "sessions", "installs", "contexts", "device-tokens", "redirects", "reset", "prewarm",
    ...platform == "ios" ? ["support"] : []];
let step, result = { client: "typescript", platform, offers };
while ((step = await post(server + "/next", result)).do != "end") {
    try { result = await deeds[step.do](step) ?? {}; } catch (error) { result = { error: error.message }; }
}
fs.rmSync(folder, { recursive: true, force: true });
process.exit(step.failed ? 1 : 0);
