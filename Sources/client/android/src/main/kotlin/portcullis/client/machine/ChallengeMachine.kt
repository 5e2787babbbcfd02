package portcullis.client.machine

import java.util.ArrayDeque
import portcullis.client.PortcullisLimits

/**
 * Challenges that were given and not used yet, and when the gateway is asked for more. The newest is used first: after
 * a restart of the gateway the older ones are worth nothing. The driver makes the calls, and counts who waits.
 */
internal class ChallengeMachine(private val limits: PortcullisLimits) {
    /** A challenge, and until when it is used. */
    class Kept(val text: String, val until: Long)

    private val kept = ArrayDeque<Kept>()
    /** Those that were used last. A cached answer brings the one that it came with again. */
    private val used = ArrayDeque<String>()
    private var life = limits.challengeLifetime
    private var holdUntil = 0L
    /** How many calls in a row brought nothing new. */
    private var fruitless = 0
    private var callCount = 0

    /** When the gateway was asked, as long as it has not answered; `null` where nothing is under way. */
    var askedSince: Long? = null
        private set

    val isAsked: Boolean get() = callCount > 0

    /** The newest challenge that is good. */
    fun take(now: Long): Kept? {
        while (true) {
            val last = kept.pollFirst() ?: return null
            if (last.until > now) return last.also { remember(it.text) }
        }
    }

    /** Whether there is none. */
    fun isEmpty(now: Long): Boolean {
        kept.removeAll { it.until <= now }
        return kept.isEmpty()
    }

    /** Whether the gateway is not asked now. A hold that ends later than any was made before the clock was set back. */
    fun isHeld(now: Long): Boolean = holdUntil > now && holdUntil - now <= PortcullisLimits.CHALLENGE_HOLD_MAX

    /** How many challenges each of the calls asks for that begin now, where so many requests wait. */
    fun calls(waiting: Int, now: Long): List<Int> {
        val calls = ArrayList<Int>()
        while (!isHeld(now) && callCount < PortcullisLimits.CALLS_MAX &&
            waiting > callCount * PortcullisLimits.COUNT_MAX
        ) {
            calls.add(countOf(maxOf(waiting - callCount * PortcullisLimits.COUNT_MAX, limits.challengesAsked)))
            began(now)
        }
        return calls
    }

    /** The call that begins to have some ahead; `null` where there are some, or none is asked for. */
    fun refill(now: Long): Int? {
        if (!isEmpty(now) || isHeld(now) || callCount > 0) return null
        began(now)
        return countOf(limits.challengesAsked)
    }

    private fun countOf(wanted: Int) = minOf(maxOf(wanted, 1), PortcullisLimits.COUNT_MAX)

    private fun began(now: Long) {
        callCount += 1
        if (askedSince == null) askedSince = now
    }

    private fun ended(now: Long) {
        callCount -= 1
        askedSince = if (callCount == 0) null else now
    }

    /** A call brought these. */
    fun came(texts: List<String>, lifetime: Long, now: Long) {
        ended(now)
        if (lifetime > 0) life = lifetime
        // A gateway or a cache that repeats itself would be asked for ever.
        if (texts.all { it in used }) {
            fruitless = minOf(fruitless + 1, PortcullisLimits.FRUITLESS_MAX)
            hold(PortcullisLimits.FRUITLESS_HOLD shl (fruitless - 1), now)
            return
        }
        fruitless = 0
        for (text in texts) add(text, now)
    }

    /** A call brought none, and maybe said when to ask again. */
    fun failed(retryAfter: Long?, now: Long) {
        ended(now)
        if (retryAfter != null) hold(retryAfter, now)
    }

    private fun hold(time: Long, now: Long) {
        holdUntil = now + minOf(time, PortcullisLimits.CHALLENGE_HOLD_MAX)
    }

    /** Keeps a challenge; the oldest gives way. Shorter than it lives, so that none ends on its way. */
    fun add(text: String, now: Long) {
        if (text.length !in 1..256 || text in used || kept.any { it.text == text }) return
        if (limits.challengesKept <= 0) return
        if (kept.size >= limits.challengesKept) kept.removeLast()
        kept.addFirst(Kept(text, now + life - minOf(life / 5, 10_000)))
    }

    /** The gateway did not know one. */
    fun clear() = kept.clear()

    private fun remember(text: String) {
        if (used.size >= PortcullisLimits.USED_MAX) used.removeFirst()
        used.addLast(text)
    }
}
