package portcullis.client.driver

import java.util.ArrayDeque
import portcullis.client.PortcullisClock
import portcullis.client.PortcullisLimits
import portcullis.client.machine.ChallengeMachine

/** Has a challenge for each request: one that came with an answer, else one of a call that others share. */
internal class ChallengeSource(
    private val calls: GatewayCalls,
    limits: PortcullisLimits,
    private val clock: PortcullisClock
) {
    private val machine = ChallengeMachine(limits)
    /** Requests without one, in the order of asking. They get [NONE] where none comes. */
    private val waiting = ArrayDeque<Shared<ChallengeMachine.Kept>>()

    /**
     * A challenge; `null` when there is none in time.
     *
     * @param isHasty whether the time counts from when the gateway was asked, be it for another request.
     */
    fun challenge(milliseconds: Long, isHasty: Boolean): ChallengeMachine.Kept? {
        val work = Shared<ChallengeMachine.Kept>()
        var wait = milliseconds
        synchronized(this) {
            val now = clock.now()
            machine.take(now)?.let { return it }
            if (machine.isHeld(now)) return null
            waiting.addLast(work)
            for (count in machine.calls(waiting.size, now)) begin(count)
            if (isHasty) wait = minOf(wait, wait - (now - (machine.askedSince ?: now)))
        }
        work.value(wait)
        synchronized(this) { waiting.remove(work) }
        return work.value(0)?.takeIf { it !== NONE }
    }

    /** Keeps a challenge that came with an answer. */
    @Synchronized
    fun add(text: String) {
        machine.add(text, clock.now())
        serve()
    }

    /** Fetches some ahead, beside everything else. */
    @Synchronized
    fun refill() {
        machine.refill(clock.now())?.let { begin(it) }
    }

    /** Forgets all of them, after the gateway did not know one. */
    @Synchronized
    fun clear() = machine.clear()

    private fun begin(count: Int) = Threads.run {
        val result = try {
            calls.challenges(count)
        } catch (error: RuntimeException) {
            null
        }
        came(result)
    }

    @Synchronized
    private fun came(result: GatewayCalls.Result<GatewayCalls.Challenges>?) {
        val now = clock.now()
        if (result is GatewayCalls.Result.Came) {
            machine.came(result.value.texts, result.value.life, now)
            serve()
            for (count in machine.calls(waiting.size, now)) begin(count)
            // Calls under way may still bring some.
            if (!machine.isAsked) giveUp()
        } else {
            machine.failed((result as? GatewayCalls.Result.Failed)?.failure?.retryAfter, now)
            giveUp()
        }
    }

    private fun serve() {
        while (waiting.isNotEmpty()) {
            val challenge = machine.take(clock.now()) ?: return
            waiting.removeFirst().end(challenge)
        }
    }

    /** Tells all who wait that there is none. */
    private fun giveUp() {
        while (waiting.isNotEmpty()) waiting.removeFirst().end(NONE)
    }

    private companion object {
        val NONE = ChallengeMachine.Kept("", 0)
    }
}
