// What all parts share: the limits, the errors that an app gets, and the names of fields.

/** The limits of machine.md, under its names, in seconds. */
export const limits = {
    proofWait: 10, enrolmentWait: 10, planWait: 2, challengeWait: 5, observedWait: 0.25, sessionWait: 5,
    deviceTokenWait: 5, assertionWait: 10, leastForDevice: 1, retryWait: 10, strictWait: 30, strictTurn: 5,
    strictTime: 600, maximumAttempts: 3, unfinishedMax: 8, heldMax: 16, redirects: 10, callTime: 30, idleTime: 15,
    keysPerDay: 3, enrolmentDelay: 2, enrolmentDelayMax: 3600, retryAfterMax: 86400, retrySpread: 0.25,
    unexplainedDelay: 21600, serviceWait: 60,
    unfitMax: 2, signingTries: 2, signingTriesMax: 4, signingPause: 0.125, lull: 10,
    openingTries: 2, shortHold: 30, longHold: 3600,
    challengesAsked: 4, countMax: 8, callsMax: 4, challengesKept: 16, challengeLifetime: 60,
    usedMax: 64, challengeHoldMax: 60, fruitlessHold: 1, fruitlessMax: 6, routesLearned: 128,
    planUsualAge: 3600, planFailureHold: 30, planFailureHoldMax: 3600, planDoubtAge: 60,
};

/** A device fails with a word: of DCError, or of Android's keystore. */
export class DeviceError extends Error {}
/** The request can't be signed, and the app does not want it without a proof. */
export class Unfit extends Error {}
/** The origin may have run the request; `answer` is the one that came. */
export class MayHaveRun extends Error { constructor(answer) { super("it may have run"); this.answer = answer; } }
/** The app has to get a token, one of `tokens`. */
export class TokenNeeded extends Error {
    constructor(answer, tokens) { super("a token is needed"); Object.assign(this, { answer, tokens }); }
}

export const DAY = 86400;

/**
 * What is known of a route.
 * @typedef {{ sign: string[], headers: string[], accept: string[], fields: Record<string, string>, pointer: string | null,
 *     strict: boolean, strict_until?: number, device: boolean, observes: boolean, said: number }} Route
 * @typedef {{ status: number, fields: Record<string, string>, content: string, unfit?: string | null }} Answer
 * @typedef {{ makesKeyFirst: boolean, makeKey(): Promise<string>, token(): Promise<string>,
 *     attest(key: string | undefined, hash: Buffer): Promise<any>,
 *     sign(key: string, counter: number, hash: Buffer): Promise<string> }} Device fails with a DeviceError
 */

/** @type {Route} */
export const UNKNOWN = { sign: [], headers: [], accept: [], fields: {}, pointer: null, strict: false, device: false,
    observes: false, said: 0 };
export const OPENING = { ...UNKNOWN, sign: ["method", "target", "body", "challenge"] };
export const USUAL = { key_id: "App-Attest-Key-Id", assertion: "App-Attest-Assertion", challenge: "App-Attest-Challenge",
    unsupported: "App-Attest-Unsupported" };
