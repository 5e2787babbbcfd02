package portcullis.client

import java.io.ByteArrayInputStream
import java.io.ByteArrayOutputStream
import java.io.Closeable
import java.io.IOException
import java.io.InputStream

/** What came of a request. More may come: a `when` over it has an `else`. */
sealed class Outcome {
    /** An answer: the origin's, or a refusal of the gateway's that nothing here mends ([PortcullisAnswer.refusal]). */
    class Answered(@JvmField val answer: PortcullisAnswer) : Outcome()

    /**
     * The request was refused, and the origin may have run it all the same: the proof came before, in a copy that
     * something on the way has made, and the answer to that one is lost. Ask the server what became of it, or tell the
     * user. A request whose method is idempotent, or that has an `Idempotency-Key`, is signed again by itself.
     */
    class MayHaveRun(@JvmField val answer: PortcullisAnswer) : Outcome()

    /** The rule takes or asks for a token of another issuer: get a new one, and send the request with it. */
    class GetToken(@JvmField val answer: PortcullisAnswer, @JvmField val tokens: List<String>) : Outcome()

    /**
     * The request can't be signed as its route asks: a signed field has a character that is not printable ASCII, or
     * stands twice, or the route takes no assertion. It was sent without a proof and refused; or not sent at all, where
     * it asked for a proof.
     */
    class Unfit(
        /** `null` where it was not sent. */
        @JvmField val answer: PortcullisAnswer?
    ) : Outcome()

    /** The request asked for a proof, and none could be made. It was not sent without one. */
    class Unproven(@JvmField val absence: Absence) : Outcome()

    /** No answer came. */
    class Failed(@JvmField val error: IOException) : Outcome()

    /** The answer that came, if any. Close it, or read its content to the end. */
    val response: PortcullisAnswer?
        get() = when (this) {
            is Answered -> answer
            is MayHaveRun -> answer
            is GetToken -> answer
            is Unfit -> answer
            is Unproven, is Failed -> null
        }
}

/** What is done after an answer to a request that something else has sent. */
sealed class Step {
    /** Send this one. */
    class Again(@JvmField val request: SignedRequest) : Step()

    /** The answer is the app's. */
    class Final(@JvmField val outcome: Outcome) : Step()
}

/** The head of an answer, as a transport or another HTTP stack has it. */
open class PortcullisResponse(
    @JvmField val status: Int,
    /** Names in any case. */
    @JvmField val fields: List<PortcullisField>,
    /** Whether it comes out of a cache: nothing that it says is obeyed. */
    @JvmField val isCached: Boolean = false
) {
    /** The values of a field, joined as RFC 9110 §5.3 has it; `null` where there is none. */
    fun field(name: String): String? {
        val values = fields.filter { it.name.equals(name, ignoreCase = true) }
        return if (values.isEmpty()) null else values.joinToString(", ") { it.value }
    }

    companion object {
        @JvmStatic
        fun of(status: Int, fields: Map<String, List<String>>): PortcullisResponse =
            PortcullisResponse(status, flat(fields))

        /** Of a map as `HttpURLConnection` has it: the status line has no name. */
        internal fun flat(fields: Map<out String?, List<String>>): List<PortcullisField> =
            fields.entries.flatMap { (name, values) ->
                if (name == null) emptyList() else values.map { PortcullisField(name, it) }
            }
    }
}

/** An answer of the gateway, or of the origin behind it. */
class PortcullisAnswer internal constructor(
    status: Int,
    fields: List<PortcullisField>,
    /** The content. Read it once, and close it. */
    @JvmField val stream: InputStream,
    private val bytesMax: Int,
    /** What the last request carried. */
    @JvmField val proof: Proof,
    @JvmField val token: TokenOutcome,
    /** What the gateway refused, where the answer is its own. */
    @JvmField val refusal: Refusal?,
    /** How often the request was sent, redirects included. */
    @JvmField val attempts: Int
) : PortcullisResponse(status, fields), Closeable {
    /** The whole content, at most [PortcullisLimits.answerBytes]. Closes the answer. */
    @Throws(IOException::class)
    fun bytes(): ByteArray = use { stream.readAtMost(bytesMax) ?: throw IOException("the answer is too long") }

    /** The same as text of UTF-8. */
    @Throws(IOException::class)
    fun text(): String = String(bytes(), Charsets.UTF_8)

    override fun close() = stream.close()
}

internal val NO_CONTENT: InputStream get() = ByteArrayInputStream(ByteArray(0))

/** All of a stream; `null` where it is longer. */
internal fun InputStream.readAtMost(limit: Int): ByteArray? {
    val whole = ByteArrayOutputStream()
    val piece = ByteArray(16 * 1024)
    while (true) {
        val count = read(piece)
        if (count < 0) return whole.toByteArray()
        if (whole.size() + count > limit) return null
        whole.write(piece, 0, count)
    }
}
