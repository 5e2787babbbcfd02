package portcullis.client.machine

import java.util.TreeSet
import portcullis.client.PortcullisLimits

/** What the gateway gave when it opened a session. */
internal class Opening(
    val id: String,
    val secret: ByteArray,
    val keyId: String,
    /** Whether its requests say the key's id, so that a load balancer finds the gateway. */
    val namesKey: Boolean,
    val window: Long,
    /** In milliseconds. */
    val life: Long
) {
    companion object {
        /** Reads the answer of `…/sessions`. */
        fun of(document: Map<*, *>, keyId: String): Opening? {
            val id = document.text("session") ?: return null
            val secret = document.text("secret")?.let { bytesOfBase64(it) } ?: return null
            val life = document.number("expires_in") ?: return null
            if (secret.size != 32 || !(life > 0 && life < 1e9) || !SignedBytes.isSignable(id)) return null
            val window = document.number("window") ?: 1.0
            return Opening(
                id, secret, keyId, document["accepts_key_id"] == true,
                if (window >= 1 && window < 1e9) window.toLong() else 1, (life * 1000).toLong()
            )
        }
    }
}

/** A request's place in a session. */
internal class Ticket(val opening: Opening, val number: Long)

/** The one session: its numbers, when the next one is opened, and when none is asked for. */
internal class SessionMachine {
    private class Open(val opening: Opening, now: Long) {
        // Shorter than it lives, so that no request ends on its way.
        val until = now + opening.life - minOf(opening.life / 10, 10_000)
        val renewal = now + opening.life / 5 * 4
        var next = 1L
        /** Numbers whose answers have not come. */
        val underWay = TreeSet<Long>()
    }

    private var open: Open? = null
    private var holdUntil = 0L
    /** The key that was refused last. A session that it still opens is not used. */
    private var refusedKey: String? = null

    /** Whether there is a session of this key. */
    fun isOpen(keyId: String, now: Long): Boolean {
        val found = open ?: return false
        if (found.opening.keyId != keyId || found.until <= now) open = null
        return open != null
    }

    /** Whether the next one is to be opened beside the requests. */
    fun isDueForRenewal(now: Long): Boolean = open?.let { it.renewal <= now } ?: false

    /** Whether one may be asked for. A hold that ends later than any was made before the clock was set back. */
    fun mayOpen(now: Long): Boolean = holdUntil <= now || holdUntil - now > PortcullisLimits.LONG_HOLD

    /** The next place; `null` where the gateway would take one more request for a replay. */
    fun place(): Ticket? {
        val session = open ?: return null
        val number = session.next
        val lowest = if (session.underWay.isEmpty()) number else session.underWay.first()
        if (number - lowest >= session.opening.window) return null
        session.next += 1
        session.underWay.add(number)
        return Ticket(session.opening, number)
    }

    /** The answer to a request has come. */
    fun ended(ticket: Ticket) {
        open?.let { if (it.opening === ticket.opening) it.underWay.remove(ticket.number) }
    }

    /** Returns whether it is used. */
    fun opened(opening: Opening, now: Long): Boolean {
        if (opening.keyId == refusedKey) return false
        open = Open(opening, now)
        return true
    }

    /** None was opened: after a failure that may pass, or one that will not. */
    fun failed(retryAfter: Long?, mayPass: Boolean, now: Long) {
        val hold = if (mayPass) retryAfter ?: PortcullisLimits.SHORT_HOLD else PortcullisLimits.LONG_HOLD
        holdUntil = now + minOf(hold, PortcullisLimits.LONG_HOLD)
    }

    /** Forgets a session that was refused, unless another one has taken its place. */
    fun forget(id: String) {
        if (open?.opening?.id == id) open = null
    }

    /** Forgets the session of a key that was refused. */
    fun forgetKey(keyId: String) {
        refusedKey = keyId
        if (open?.opening?.keyId == keyId) open = null
    }

    fun reset() {
        open = null
        holdUntil = 0
    }
}
