package portcullis.client

/** What a route asks to be signed, and how. The defaults are those of the gateway's rules. */
class SigningRequirement internal constructor(
    /** What the signed bytes are. */
    @JvmField val form: Form,
    @JvmField val challenge: Challenge,
    /** Where the content holds the challenge, as a JSON pointer: the app puts it there. */
    @JvmField val challengePointer: String?,
    /** Whether the gateway needs `Content-Digest` before the content. */
    @JvmField val needsContentDigest: Boolean,
    /** How far requests of the key may overtake each other; 0 for `strict`, one at a time. */
    @JvmField val window: Int,
    @JvmField val takesAssertions: Boolean,
    @JvmField val takesSessions: Boolean,
    /** Whether an Android phone shows a token of Google Play. */
    @JvmField val asksToken: Boolean,
    /** The names of the proof's fields. */
    @JvmField val fields: ProofFields
) {
    /** All four parts, with a challenge, in a window of 64. */
    constructor() : this(
        Form.Lines(Form.ALL, emptyList()), Challenge.REQUIRED, null, false, WINDOW_MAX, true, false, false,
        ProofFields()
    )

    enum class Challenge(internal val word: String) { REQUIRED("required"), OPTIONAL("optional"), NONE("none") }

    /** The bytes that are signed. */
    sealed class Form {
        /** Lines of these parts of `method target body challenge`, and of fields in lower case. */
        data class Lines(val parts: Set<String>, val headers: List<String>) : Form()

        object Content : Form()

        /** The challenge's text alone. */
        object ChallengeText : Form()

        internal companion object {
            val ALL = setOf("method", "target", "body", "challenge")
        }
    }

    val isStrict: Boolean get() = window == 0

    /** The same with these fields signed too, in the rule's order. */
    fun signingFields(vararg names: String): SigningRequirement {
        val parts = (form as? Form.Lines)?.parts ?: Form.ALL
        return copy(form = Form.Lines(parts, names.map { it.lowered() }))
    }

    /** The same for a rule that takes sessions. */
    fun takingSessions(): SigningRequirement = copy(takesSessions = true)

    /** The same for a rule that asks for a token of Google Play. */
    fun askingToken(): SigningRequirement = copy(asksToken = true)

    /** The same for a rule whose counter is strict. */
    fun strict(): SigningRequirement = copy(window = 0)

    /** Whether a challenge goes into the field. With a pointer, the content has it. */
    internal val needsChallengeField: Boolean
        get() = challengePointer == null && (challenge != Challenge.NONE || form == Form.ChallengeText)

    /** Whether a session can stand for an assertion: the route says so, and signs enough. */
    internal val fitsSession: Boolean
        get() = takesSessions && form is Form.Lines && form.parts.containsAll(listOf("method", "target", "body"))

    internal fun copy(
        form: Form = this.form,
        challenge: Challenge = this.challenge,
        challengePointer: String? = this.challengePointer,
        window: Int = this.window,
        takesAssertions: Boolean = this.takesAssertions,
        takesSessions: Boolean = this.takesSessions,
        asksToken: Boolean = this.asksToken,
        fields: ProofFields = this.fields
    ) = SigningRequirement(
        form, challenge, challengePointer, needsContentDigest, window, takesAssertions, takesSessions, asksToken, fields
    )

    private val parts: List<Any?>
        get() = listOf(
            form, challenge, challengePointer, needsContentDigest, window, takesAssertions, takesSessions, asksToken,
            fields
        )

    override fun equals(other: Any?) = other is SigningRequirement && other.parts == parts

    override fun hashCode() = parts.hashCode()

    internal companion object {
        /** The widest window that a gateway has. */
        const val WINDOW_MAX = 64
    }
}

/** The names of the fields that carry an assertion. */
data class ProofFields @JvmOverloads constructor(
    val keyId: String = "App-Attest-Key-Id",
    val assertion: String = "App-Attest-Assertion",
    val challenge: String = "App-Attest-Challenge",
    val unsupported: String = "App-Attest-Unsupported"
) {
    internal val all: List<String> get() = listOf(keyId, assertion, challenge, unsupported)
}

/** In lower case where it is ASCII, whatever the language of the phone. */
internal fun String.lowered(): String =
    String(CharArray(length) { if (this[it] in 'A'..'Z') this[it] + 32 else this[it] })
