package portcullis.client

/**
 * How long the client waits, and how much it keeps: the numbers of docs/machine.md. Times are in milliseconds.
 *
 * Set what differs before a client is made with it.
 */
class PortcullisLimits {
    /** All waits of a request together, but for a strict counter's turn and what the sending takes. */
    @JvmField var proofWait = 10_000L
    /** A request's wait for its key. One whose rule observes does not wait. */
    @JvmField var enrolmentWait = 10_000L
    /** A request's wait for the plan, where nothing is known of its route. */
    @JvmField var planWait = 2_000L
    /** A request's wait for a challenge. */
    @JvmField var challengeWait = 5_000L
    /** A request's wait for a session. */
    @JvmField var sessionWait = 5_000L
    /** A request's or an enrolment's wait for a token of Google Play. Then it goes without. */
    @JvmField var deviceTokenWait = 5_000L
    /** A request's wait for its signature. */
    @JvmField var assertionWait = 10_000L
    /** The longest `Retry-After` after which a request is sent again by itself. */
    @JvmField var retryWait = 10_000L
    /** A request's wait for its turn where a counter is strict. Then it is signed out of turn. */
    @JvmField var strictWait = 30_000L
    /** How long one request keeps the turn. */
    @JvmField var strictTurn = 5_000L
    /** How often a request is sent. Asking what a route signs does not count, nor does waiting for a key. */
    @JvmField var maximumAttempts = 3
    /** How many redirects are followed. */
    @JvmField var redirects = 10
    /** A call of one of the gateway's endpoints, its answer included. */
    @JvmField var callTime = 30_000L
    /** How many keys are attested in 24 hours. */
    @JvmField var keysPerDay = 3
    /** The first delay after a failed enrolment. It doubles, with jitter, up to the next. */
    @JvmField var enrolmentDelay = 2_000L
    @JvmField var enrolmentDelayMax = 3_600_000L
    /** The longest `Retry-After` of an enrolment. A longer one is cut to it. */
    @JvmField var retryAfterMax = 86_400_000L
    /** How long the keystore may take to make a key. */
    @JvmField var serviceWait = 60_000L
    /** How long a process that enrols keeps others from it, should it stop to answer. */
    @JvmField var lease = 90_000L
    /** How many challenges are asked for at once, at most 8, and how many are kept. */
    @JvmField var challengesAsked = 4
    @JvmField var challengesKept = 16
    /** How long a challenge is used before a call has said it. */
    @JvmField var challengeLifetime = 60_000L
    /** Of how many routes it is remembered what they sign. */
    @JvmField var routesLearned = 128

    // What the page does not name: it is about bytes, or about this client's own parts.

    /** The most bytes of an answer that [PortcullisAnswer.bytes] reads. */
    @JvmField var answerBytes = 32 * 1024 * 1024
    /** The most bytes of a plan. */
    @JvmField var planBytes = 1024 * 1024
    /** How long a connection may take, and how long a byte of an answer, in a request of the app's. */
    @JvmField var connectWait = 10_000L
    @JvmField var readWait = 30_000L

    internal companion object {
        const val OBSERVED_WAIT = 250L
        const val LEAST_FOR_DEVICE = 1_000L
        const val STRICT_TIME = 600_000L
        const val UNFINISHED_MAX = 8
        const val HELD_MAX = 16
        const val IDLE_TIME = 15_000L
        const val RETRY_SPREAD = 0.25
        const val LEASE_LOOK = 500L
        const val LOOK_EVERY = 10_000L
        const val UNFIT_MAX = 2
        const val SIGNING_TRIES = 2
        const val SIGNING_TRIES_MAX = 4
        const val OPENING_TRIES = 2
        const val SHORT_HOLD = 30_000L
        const val LONG_HOLD = 3_600_000L
        const val COUNT_MAX = 8
        const val CALLS_MAX = 4
        const val USED_MAX = 64
        const val CHALLENGE_HOLD_MAX = 60_000L
        const val FRUITLESS_HOLD = 1_000L
        const val FRUITLESS_MAX = 6
        const val PLAN_USUAL_AGE = 3_600_000L
        const val PLAN_FAILURE_HOLD = 30_000L
        const val PLAN_FAILURE_HOLD_MAX = 3_600_000L
        const val PLAN_DOUBT_AGE = 60_000L

        // Not of the page.

        const val DAY = 86_400_000L
        /** Numbers of a key that are reserved at once: one write to the disk for so many. */
        const val NUMBERS_RESERVED = 64L
        /** How long the record's lock of another process is waited for. It is held for some microseconds. */
        const val LOCK_WAIT = 2_000L
        /** Tokens of Google Play that one request, or one try of an enrolment, shows. */
        const val TOKENS_SHOWN = 2
        /** Tokens that are made at once. A call that never ends keeps its place. */
        const val TOKENS_AT_ONCE = 8
        /** Calls of the keystore at once. One that never ends keeps its place. */
        const val KEYSTORE_CALLS = 16
        /** Bytes of an endpoint's answer. */
        const val ENDPOINT_BYTES = 64 * 1024
        /** Bytes that are read of an answer after which the request is sent again. */
        const val DRAINED_BYTES = 16 * 1024
        const val CONTEXT_BYTES = 256
    }
}
