package portcullis.client.machine

import portcullis.client.PortcullisLimits

/**
 * How much longer one request waits for what it is to carry, and before it is sent again: its tries and redirects share
 * it. What is spent on sending does not count, nor the turn of a strict counter. Times are in milliseconds.
 */
internal class Patience(limits: PortcullisLimits, timeout: Long) {
    /** What one wait may take that does not count. */
    val longest: Long = if (timeout > 0) timeout else Long.MAX_VALUE
    var left: Long = minOf(limits.proofWait, longest)
        private set

    /** How long something is waited for that may take so long. */
    fun forWait(longest: Long): Long = minOf(longest, left)

    /** The same for what the phone makes by itself, which is worth its time also when the rest is over. */
    fun forDevice(longest: Long): Long = minOf(longest, maxOf(left, PortcullisLimits.LEAST_FOR_DEVICE))

    fun spend(milliseconds: Long) {
        left = maxOf(0, left - maxOf(0, milliseconds))
    }
}
