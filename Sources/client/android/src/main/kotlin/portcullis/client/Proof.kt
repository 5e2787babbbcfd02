package portcullis.client

/** What a request carried to prove where it comes from. */
sealed class Proof {
    class Assertion(@JvmField val keyId: String) : Proof()

    /** A signature with the secret of a session that this key has opened. */
    class Session(@JvmField val keyId: String) : Proof()

    class None(
        @JvmField val absence: Absence,
        /** Whether it said that this phone can't prove anything now, in `App-Attest-Unsupported`. */
        @JvmField val saysUnsupported: Boolean = false
    ) : Proof()

    internal val key: String?
        get() = when (this) {
            is Assertion -> keyId
            is Session -> keyId
            is None -> null
        }
}

/** Why a request was sent without a proof. More may come: a `when` over it has an `else`. */
sealed class Absence(
    /** For logs. */
    @JvmField val word: String
) {
    /** The route asks for none. */
    object NotAsked : Absence("not-asked")

    /** The address is none of the gateway's. A proof is never sent there. */
    object OtherOrigin : Absence("other-origin")

    /** Neither a plan nor an answer says what the route signs. */
    object RouteUnknown : Absence("route-unknown")

    /** The keystore did not sign, also when it was asked again, or took too long. */
    class KeystoreFailed(@JvmField val kind: KeyFailure.Kind) : Absence("key-failed")

    /** The key is being enrolled, and that takes longer than the request waits. */
    object Enrolling : Absence("enrolling")

    /** No enrolment is tried before a time. */
    class Held(@JvmField val hold: Hold) : Absence("held")

    /** The gateway gave no challenge in time. */
    object ChallengeUnavailable : Absence("challenge-unavailable")

    /** The record can't be read or written now, or another process keeps it. */
    object RecordUnavailable : Absence("record-unwritable")

    /** The request can't be signed as the route asks. */
    object RequestUnfit : Absence("request-unfit")

    /** The client was closed. */
    object Closed : Absence("closed")

    override fun toString() = word
}

/** Why no key is enrolled now, and until when none is tried. */
class Hold(
    @JvmField val cause: Cause,
    /** In milliseconds since 1970. */
    @JvmField val until: Long,
    /** The gateway's reason, or what the keystore failed with. */
    @JvmField val detail: String? = null
) {
    /** More may come: a `when` over it has an `else`. */
    enum class Cause(@JvmField val word: String) {
        /** The keystore can't make a key now. It is asked again for the same one. */
        KEYSTORE_UNAVAILABLE("keystore-unavailable"),
        KEYSTORE_FAILED("keystore-failed"),
        /** The gateway admits no more enrolments now, or not yet. */
        THROTTLED("throttled"),
        /** The gateway was not reached or failed. */
        GATEWAY_UNAVAILABLE("gateway-unavailable"),
        /** Keys were lost or refused several times. */
        KEYS_LOST("keys-lost"),
        /** As many keys as a day allows were made. */
        DAILY_CAP("daily-cap"),
        /** The context has no byte, or more than 256. [PortcullisClient.reset] brings another one. */
        CONTEXT_UNFIT("context-unfit"),
        /** The gateway does not admit this app or phone. */
        REFUSED("refused")
    }

    override fun equals(other: Any?) =
        other is Hold && other.cause == cause && other.until == until && other.detail == detail

    override fun hashCode() = until.hashCode()
}

/** What the gateway itself refused. An answer of anything else has none. */
class Refusal(
    /** Such as `key-unknown`. Reasons are stable, and there may be more of them. */
    @JvmField val reason: String,
    @JvmField val next: Next,
    /** The names of tokens of other issuers that the rule takes or asks for. */
    @JvmField val tokens: List<String> = emptyList()
) {
    /** What the client is to do. More may come: a `when` over it has an `else`. */
    enum class Next(@JvmField val word: String) {
        SIGN_AGAIN("sign-again"), ENROL("enrol"), RETRY_LATER("retry-later"), FIX_CLIENT("fix-client"),
        GET_TOKEN("get-token"),
        /** Nothing, and also what this client does not know. */
        NONE("none");

        internal companion object {
            fun of(word: String?): Next? = values().firstOrNull { it.word == word }
        }
    }
}

/** Whether a request carried a token of Google Play, and why it carried none. */
enum class TokenOutcome(@JvmField val word: String) {
    /** The route asks for none, or the request carried no assertion. */
    NOT_ASKED("not-asked"),
    SENT("sent"),
    /** The app makes none. */
    UNSUPPORTED("unsupported"),
    FAILED("failed"),
    /** It took longer than [PortcullisLimits.deviceTokenWait]. */
    LATE("late");

    internal val isMissing: Boolean get() = this != NOT_ASKED && this != SENT
}
