package portcullis.client.driver

import java.io.IOException
import java.security.MessageDigest
import java.util.concurrent.TimeUnit
import portcullis.client.PortcullisContent
import portcullis.client.PortcullisField
import portcullis.client.Proof
import portcullis.client.SigningRequirement
import portcullis.client.TokenOutcome
import portcullis.client.machine.OwnFields
import portcullis.client.machine.Patience
import portcullis.client.machine.RequestPlace
import portcullis.client.machine.Ticket

/** A request as the app wrote it; of a redirect, the next one. */
internal class Draft(
    val method: String,
    val place: RequestPlace,
    val fields: List<PortcullisField>,
    val content: PortcullisContent,
    /** What the app knows of its route. */
    val assumed: SigningRequirement?
) {
    private var known: ByteArray? = null

    /** SHA-256 of the content, which is read once for it. */
    @Throws(IOException::class)
    fun digest(): ByteArray {
        known?.let { return it }
        val hash = MessageDigest.getInstance("SHA-256")
        val piece = ByteArray(64 * 1024)
        var length = 0L
        content.open().use {
            while (true) {
                val count = it.read(piece)
                if (count < 0) break
                hash.update(piece, 0, count)
                length += count
            }
        }
        if (length != content.length) throw IOException("the content has another length than it says")
        return hash.digest().also { known = it }
    }

    /** Where an answer sends the client on (RFC 9110 §15.4); `null` where it does not, or would leave TLS. */
    fun redirected(status: Int, location: String?): Draft? {
        if (status !in REDIRECTS || location == null) return null
        val next = place.resolved(location) ?: return null
        if (place.scheme == "https" && next.scheme == "http") return null
        var left = fields
        if (next.origin != place.origin) {
            left = OwnFields.withoutCredentials(OwnFields.withoutProof(left, SigningRequirement()))
        }
        // 301 and 302 turn POST into GET, as browsers do (§15.4.2, note).
        val becomesGet = status == 303 && method != "HEAD" || status in 301..302 && method == "POST"
        if (!becomesGet) return Draft(method, next, left, content, assumed)
        return Draft("GET", next, OwnFields.withoutContent(left), PortcullisContent.NONE, assumed)
    }

    private companion object {
        val REDIRECTS = setOf(301, 302, 303, 307, 308)
    }
}

/** A request that is ready to be sent, and what it carries. */
internal class Proven(
    val fields: List<PortcullisField>,
    val proof: Proof,
    val token: TokenOutcome = TokenOutcome.NOT_ASKED,
    val ticket: Ticket? = null,
    /** Lets others on when the head of the answer has come. */
    private val ending: () -> Unit = {}
) {
    fun end() = ending()
}

/** Lets work wait, for as long as it may and this request still does. */
internal inline fun <T> Patience.wait(longest: Long, work: (Long) -> T): T = timed(forWait(longest), work)

/** The same for what the phone makes by itself. */
internal inline fun <T> Patience.waitForDevice(longest: Long, work: (Long) -> T): T = timed(forDevice(longest), work)

internal inline fun <T> Patience.timed(milliseconds: Long, work: (Long) -> T): T {
    val start = System.nanoTime()
    try {
        return work(milliseconds)
    } finally {
        spend(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start))
    }
}
