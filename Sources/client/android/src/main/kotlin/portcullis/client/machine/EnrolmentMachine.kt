package portcullis.client.machine

import portcullis.client.Hold
import portcullis.client.KeyFailure
import portcullis.client.PortcullisLimits
import portcullis.client.Refusal
import portcullis.client.machine.EnrolmentRecord.Phase

/** Why one of the gateway's endpoints gave nothing. Times are in milliseconds. */
internal sealed class CallFailure {
    abstract val retryAfter: Long?

    class Refused(val refusal: Refusal, override val retryAfter: Long?) : CallFailure()

    /** Not reached, failed, or something else answered. */
    class Unreachable(override val retryAfter: Long?) : CallFailure()
}

/**
 * From no key to an enrolled one: the states are those of the record, and each event returns what is done next. The
 * driver keeps the record before it does that. Android fixes a key's challenge when the key is made, so the challenge
 * comes first: what the page says of an attestation is the making of the key here.
 *
 *     none ── challengeReceived ──▶ granted ── keyMade ──▶ attested ── registered ──▶ enrolled
 */
internal class EnrolmentMachine(record: EnrolmentRecord, private val limits: PortcullisLimits) {
    /** What the driver does. */
    sealed class Action {
        object AskChallenge : Action()
        class MakeKey(val alias: String, val grant: Grant) : Action()
        class Register(val alias: String, val grant: Grant) : Action()
        class Done(val alias: String, val keyId: String) : Action()
        class Stop(val hold: Hold) : Action()

        val isLast: Boolean get() = this is Done || this is Stop
    }

    var record = record
        private set

    // Events.

    /** The record was read: goes on where it stands. */
    fun began(now: Long): Action {
        forgetOld(now)
        val phase = record.phase
        if (phase is Phase.Enrolled) return Action.Done(phase.name, phase.keyId)
        hold(now)?.let { return Action.Stop(it) }
        record = record.copy(hold = null)
        return when (phase) {
            Phase.None -> withinCap(now) ?: Action.AskChallenge
            is Phase.Named -> (if (phase.name == record.countedKey) null else withinCap(now)) ?: Action.AskChallenge
            is Phase.Granted -> when {
                phase.name != record.countedKey && record.attestations.size >= limits.keysPerDay ->
                    withinCap(now) ?: Action.AskChallenge
                phase.grant.until > now -> counted(phase.name, phase.grant, now)
                else -> {
                    // A key for a challenge that has ended is useless.
                    record = record.copy(phase = Phase.Named(phase.name))
                    Action.AskChallenge
                }
            }
            is Phase.Attested -> Action.Register(phase.name, phase.grant)
            is Phase.Enrolled -> Action.Done(phase.name, phase.keyId)
        }
    }

    /** The gateway admits this enrolment. */
    fun challengeReceived(grant: Grant, fresh: String, now: Long): Action =
        counted((record.phase as? Phase.Named)?.name ?: fresh, grant, now)

    /** The key is counted before it is made: a process that dies may have made it. */
    private fun counted(alias: String, grant: Grant, now: Long): Action {
        record = record.copy(phase = Phase.Granted(alias, grant))
        if (alias != record.countedKey) {
            record = record.copy(attestations = record.attestations + now, countedKey = alias)
        }
        return Action.MakeKey(alias, grant)
    }

    fun challengeFailed(failure: CallFailure, now: Long, jitter: Double): Action = stop(failure, now, jitter)

    /** The keystore has the key. */
    fun keyMade(now: Long): Action {
        val phase = record.phase as? Phase.Granted ?: return began(now)
        record = record.copy(phase = Phase.Attested(phase.name, phase.grant), failures = 0, deviceFailures = 0)
        return Action.Register(phase.name, phase.grant)
    }

    /** The keystore made no key, or does not show the one that it has. It is asked again, for the same one. */
    fun keyFailed(kind: KeyFailure.Kind, now: Long, jitter: Double): Action {
        // One that was not made costs nothing. What took too long may have been made.
        if (kind == KeyFailure.Kind.TRANSIENT) return stop(Hold.Cause.KEYSTORE_UNAVAILABLE, kind.word, now, jitter)
        record = record.copy(deviceFailures = minOf(record.deviceFailures, FAILURES_MAX) + 1)
        if (record.phase is Phase.Granted && record.phase.alias == record.countedKey) {
            record = record.copy(attestations = record.attestations.dropLast(1), countedKey = null)
        }
        return stop(Hold.Cause.KEYSTORE_FAILED, kind.word, now, jitter)
    }

    /** The keystore does not know a key any more that the gateway was to get. */
    fun keyMissing(now: Long, jitter: Double): Action {
        record = record.copy(phase = Phase.None)
        return lost(now, jitter)
    }

    /** The gateway has the key. */
    fun registered(keyId: String, now: Long): Action {
        val phase = record.phase as? Phase.Attested ?: return began(now)
        record = record.copy(
            phase = Phase.Enrolled(phase.name, keyId), hasContext = phase.grant.context != null, numbers = 0,
            failures = 0, hold = null
        )
        return Action.Done(phase.name, keyId)
    }

    /** The gateway did not take the key. */
    fun registerFailed(failure: CallFailure, now: Long, jitter: Double): Action {
        if (failure is CallFailure.Refused && failure.refusal.next == Refusal.Next.ENROL) return keyMissing(now, jitter)
        return stop(failure, now, jitter)
    }

    /** Until when nothing is tried; `null` for a hold that is over, or was made before the clock was set back. */
    fun hold(now: Long): Hold? {
        val longest = maxOf(limits.retryAfterMax, limits.enrolmentDelayMax, PortcullisLimits.DAY) * 5 / 4
        return record.hold?.takeIf { it.until > now && it.until - now <= longest }
    }

    /** Forgets a key that the gateway or the keystore refused. Returns whether it was still the one. */
    fun forgot(keyId: String, now: Long, jitter: Double): Boolean {
        val phase = record.phase
        if (phase !is Phase.Enrolled || phase.keyId != keyId) return false
        record = record.copy(phase = Phase.None)
        lost(now, jitter)
        return true
    }

    // Users.

    /** Whether a day allows another key in the place of the one that is there, if any. */
    fun mayReplaceKey(now: Long): Boolean {
        forgetOld(now)
        return record.phase == Phase.None || record.attestations.size < limits.keysPerDay
    }

    /** Whether another key may take the place of one with which nothing is signed: once in a day. */
    fun mayReplaceUnfit(now: Long): Boolean = mayReplaceKey(now) && record.losses.isEmpty()

    /** Another key is wanted: empties the record, but for what is counted. Returns whether the key was forgotten. */
    fun reset(keepsLast: Boolean, now: Long): Boolean {
        val isKept = !mayReplaceKey(now) && keepsLast && !record.mayHaveContext
        val fresh = EnrolmentRecord(
            record.gateway, attestations = record.attestations, countedKey = record.countedKey,
            deviceFailures = record.deviceFailures
        )
        record = if (!isKept) fresh else fresh.copy(
            phase = record.phase, hasContext = record.hasContext, numbers = record.numbers
        )
        return !isKept
    }

    /** A user signed out. A key on its way that would be bound to a context is given up. */
    fun signedOut() {
        val isOnItsWay = record.phase is Phase.Granted || record.phase is Phase.Attested
        if (isOnItsWay && record.mayHaveContext) record = record.copy(phase = Phase.None, hold = null)
    }

    // Delays.

    /** A key ended. The next one is made at once, unless keys were lost before in this day. */
    private fun lost(now: Long, jitter: Double): Action {
        forgetOld(now)
        val before = record.losses.size
        record = record.copy(losses = record.losses + now)
        if (before == 0) {
            record = record.copy(hold = null)
            return began(now)
        }
        // Longer than a failure of one call: each of these costs a key.
        return held(Hold(Hold.Cause.KEYS_LOST, now + delay(before + 3, jitter)))
    }

    private fun stop(failure: CallFailure, now: Long, jitter: Double): Action {
        val refusal = (failure as? CallFailure.Refused)?.refusal
        val isLasting = refusal != null && refusal.next != Refusal.Next.RETRY_LATER
        val cause = when {
            isLasting -> Hold.Cause.REFUSED
            refusal != null -> Hold.Cause.THROTTLED
            else -> Hold.Cause.GATEWAY_UNAVAILABLE
        }
        // Nothing here mends a lasting one. The longest delay keeps asking cheap.
        val told = failure.retryAfter ?: if (isLasting) limits.enrolmentDelayMax else null
        if (told == null) return stop(cause, refusal?.reason, now, jitter)
        record = record.copy(failures = minOf(record.failures, FAILURES_MAX) + 1)
        // Up to a quarter more, so that a crowd that was told the same does not come back at once.
        val wait = minOf(told, limits.retryAfterMax) * (1 + jitter * PortcullisLimits.RETRY_SPREAD)
        return held(Hold(cause, now + maxOf(wait.toLong(), (500 + jitter * 500).toLong()), refusal?.reason))
    }

    private fun stop(cause: Hold.Cause, detail: String?, now: Long, jitter: Double): Action {
        val delay = delay(record.failures, jitter)
        record = record.copy(failures = minOf(record.failures, FAILURES_MAX) + 1)
        return held(Hold(cause, now + delay, detail))
    }

    private fun held(hold: Hold): Action {
        record = record.copy(hold = hold)
        return Action.Stop(hold)
    }

    /** Doubles with each failure, between half of it and the whole. */
    private fun delay(failures: Int, jitter: Double): Long {
        val doubled = minOf(limits.enrolmentDelay shl minOf(maxOf(failures, 0), 20), limits.enrolmentDelayMax)
        return (doubled * (0.5 + jitter / 2)).toLong()
    }

    private fun withinCap(now: Long): Action? {
        if (record.attestations.size < limits.keysPerDay) return null
        val oldest = record.attestations.sorted().firstOrNull() ?: now
        return held(Hold(Hold.Cause.DAILY_CAP, oldest + PortcullisLimits.DAY))
    }

    /**
     * Forgets what is older than a day. What is in the future was counted before the clock was set back: it counts as
     * of now, so that it neither holds for ever nor makes room for more keys.
     */
    private fun forgetOld(now: Long) {
        fun recent(times: List<Long>) = times.map { minOf(it, now) }.filter { it > now - PortcullisLimits.DAY }
        record = record.copy(attestations = recent(record.attestations), losses = recent(record.losses))
    }

    private companion object {
        /** The number of failures above which delays grow no more. */
        const val FAILURES_MAX = 32
    }
}
