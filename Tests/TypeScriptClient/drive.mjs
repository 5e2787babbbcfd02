/** Drives the client through the proving ground: node drive.mjs http://127.0.0.1:8099 [android] */
import * as fs from "node:fs";
import * as http from "node:http";
import * as os from "node:os";
import * as path from "node:path";
import { Client } from "./portcullis-client.mjs";
import { DeviceError, MayHaveRun, TokenNeeded, Unfit } from "./words.mjs";

function post(url, value) {
    return new Promise((resolve, reject) => {
        const options = { method: "POST", agent: false, headers: { "Content-Type": "application/json" } };
        const request = http.request(url, options, async (answer) => {
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
    constructor({ device, package: name = "com.example.shop", supported = true }) {
        Object.assign(this, { url: device, package: name, isSupported: supported });
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

async function answerOf(client, step, number) {
    const fill = (text) => text.replaceAll("{n}", `${number}`);
    const fields = step.fields.map(([name, value]) => [name, fill(value)]);
    let result;
    try {
        const answer = await client.send(step.method, fill(step.path), { fields, content: step.content });
        result = { outcome: answer.unfit ? "unfit" : "answered", answer, error: answer.unfit ?? undefined };
    } catch (error) {
        const outcome = error instanceof MayHaveRun ? "may-have-run" : error instanceof TokenNeeded ? "get-token" :
            error instanceof Unfit ? "unfit" : "failed";
        result = { outcome, answer: error.answer, tokens: error.tokens, error: `${error.message}` };
    }
    const { answer, ...more } = result;
    return { ...more, status: answer?.status, fields: answer?.fields };
}

const [server, platform = "ios"] = process.argv.slice(2);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "client-"));
let ahead = 0, step;
/** By the number of the process, which is one of this program: two can't share a record. */
const clients = new Map();
const offers = ["clock", "plan", "sessions", "installs", "contexts", "device-tokens", "redirects", "reset", "prewarm",
    ...platform == "ios" ? ["support"] : []];
let result = { client: "typescript", platform, offers };

/** As a kill does: the client makes no call any more, and writes nothing. */
function stop(number) {
    const client = clients.get(number);
    if (!client) return;
    client.call = () => new Promise(() => {});
    client.key.file.save = client.routes.file.save = () => {};
    clients.delete(number);
}

function start(step) {
    const { process: number, state, gateway, plan, sessions, context } = step;
    stop(number);
    if (state == "new") {
        for (const other of [...clients.keys()]) stop(other);
        fs.rmSync(folder, { recursive: true, force: true });
    }
    const now = () => Date.now() / 1000 + ahead, install = path.join(folder, `${state == "another" ? number : 0}`);
    const device = new (platform == "android" ? Android : Apple)(step);
    clients.set(number, new Client(gateway, device, install, { plan, sessions, context, now }));
}

while ((step = await post(server + "/next", result)).do != "end") {
    result = {};
    try {
        const client = clients.get(step.process);
        if (step.do == "start") start(step);
        else if (step.do == "send") {
            const asked = [client, ...(step.beside ?? []).map((number) => clients.get(number))];
            const sent = asked.flatMap((one) =>
                Array.from({ length: step.count ?? 1 }, (_, number) => answerOf(one, step, number)));
            result = { answers: await Promise.all(sent) };
        }
        else if (step.do == "clock") ahead += step.seconds;
        else if (step.do == "prewarm") client.prewarm();
        else if (step.do == "reset") client.reset(step.context);
        else if (step.do == "sign-out") client.signOut();
        else if (step.do == "stop") stop(step.process);
    } catch (error) { result = { error: `${error.message}` }; }
}
fs.rmSync(folder, { recursive: true, force: true });
process.exit(step.failed ? 1 : 0);
