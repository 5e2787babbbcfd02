package portcullis.client.driver

import java.io.IOException
import java.security.SecureRandom
import portcullis.client.Absence
import portcullis.client.Hold
import portcullis.client.KeyFailure
import portcullis.client.PortcullisClock
import portcullis.client.PortcullisLimits
import portcullis.client.Refusal
import portcullis.client.machine.CallFailure
import portcullis.client.machine.EnrolmentMachine
import portcullis.client.machine.EnrolmentMachine.Action
import portcullis.client.machine.EnrolmentRecord
import portcullis.client.machine.EnrolmentRecord.Phase
import portcullis.client.machine.Grant
import portcullis.client.machine.base64
import portcullis.client.machine.sha256

/**
 * One enrolment, from the record as it stands to its end. Drives [EnrolmentMachine]. It goes on when no caller waits
 * for it. Once it is stopped it writes nothing more.
 */
internal class EnrolmentRun(private val parts: Parts, private val context: ByteArray?) {
    /** What every enrolment of a client uses. */
    class Parts(
        val gateway: String,
        val limits: PortcullisLimits,
        val clock: PortcullisClock,
        private val records: RecordFile,
        val keys: TimedKeys,
        val calls: GatewayCalls,
        val tokens: TokenSource,
        val enrolsWithToken: Boolean,
        val say: (String) -> Unit
    ) {
        /** Keys that were refused here. None of them is used again, whatever a record says that was read before. */
        private val refused = ArrayList<String>()
        /** By which its leases are told apart. */
        val holder: String = hex(12)
        @Volatile var isDeviceBroken = false
            private set

        fun jitter(): Double = RANDOM.nextDouble()

        fun read(): EnrolmentRecord = saw(records.read(gateway))

        /** Changes the record, and deletes the key that is not in it any more. */
        fun change(body: (EnrolmentRecord) -> EnrolmentRecord?): EnrolmentRecord {
            var before: String? = null
            val after = records.change(gateway) {
                before = it.phase.alias
                body(it)
            }
            before?.let { if (it != after.phase.alias) keys.delete(it) }
            return saw(after)
        }

        private fun saw(record: EnrolmentRecord): EnrolmentRecord {
            isDeviceBroken = record.isDeviceBroken
            return record
        }

        fun enrolling() = records.enrolling()

        fun nextNumber(keyId: String): Long? = records.nextNumber(gateway, keyId)

        fun isRefused(keyId: String): Boolean = synchronized(refused) { keyId in refused }

        fun refuse(keyId: String) = synchronized(refused) {
            if (keyId !in refused) refused.add(keyId)
            if (refused.size > REFUSED_MAX) refused.removeAt(0)
        }

        /** Forgets a key that was refused, unless another one has taken its place. */
        fun forget(keyId: String, reason: String) {
            var isForgotten = false
            val record = change {
                val machine = EnrolmentMachine(it, limits)
                isForgotten = machine.forgot(keyId, clock.now(), jitter())
                if (isForgotten) machine.record else null
            }
            if (!isForgotten) return
            say("key lost: " + reason)
            record.hold?.let { sayHeld(it) }
        }

        fun sayHeld(hold: Hold) = say(
            "enrolment held for " + (hold.until - clock.now()) / 1000 + " s: " + hold.cause.word +
                (hold.detail?.let { ", " + it } ?: "")
        )
    }

    val work = Shared<KeyOutcome>()
    @Volatile private var isStopped = false
    private val limits: PortcullisLimits get() = parts.limits
    private val now: Long get() = parts.clock.now()

    /** Nothing more is written. */
    fun stop() {
        isStopped = true
    }

    /** The key, or why there is none. */
    fun outcome(): KeyOutcome {
        if (context != null && context.size !in 1..PortcullisLimits.CONTEXT_BYTES) {
            val hold = Hold(Hold.Cause.CONTEXT_UNFIT, Long.MAX_VALUE)
            parts.say("the context has no byte, or more than 256")
            return KeyOutcome.None(Absence.Held(hold))
        }
        var losses = 0
        try {
            while (!isStopped && losses < LOSSES_MAX) {
                val lock = parts.enrolling()
                try {
                    val record = parts.read()
                    val phase = record.phase
                    if (phase is Phase.Enrolled) {
                        if (!parts.isRefused(phase.keyId)) return KeyOutcome.Key(phase.name, phase.keyId)
                        // It could not be forgotten when it was refused.
                        parts.forget(phase.keyId, "refused")
                        losses += 1
                    } else if (lock != null || !isKeptOut(record.lease)) {
                        ending(record)?.let { return it }
                        losses += 1
                    }
                } finally {
                    lock?.release()
                }
                if (!isStopped) Thread.sleep((PortcullisLimits.LEASE_LOOK * (0.5 + parts.jitter())).toLong())
            }
        } catch (error: IOException) {
            parts.say("the record can't be written")
            return KeyOutcome.None(Absence.RecordUnavailable)
        } catch (error: InterruptedException) {
            return KeyOutcome.None(Absence.Enrolling)
        }
        return KeyOutcome.None(if (isStopped) Absence.Enrolling else Absence.RecordUnavailable)
    }

    /** Whether another one enrols. A lease that ends later than any was made before the clock was set back. */
    private fun isKeptOut(lease: EnrolmentRecord.Lease?): Boolean {
        if (lease == null || lease.holder == parts.holder) return false
        return lease.until > now && lease.until - now <= LEASE_MAX
    }

    private fun lease(): EnrolmentRecord.Lease {
        val step = maxOf(limits.serviceWait, limits.callTime) + LEASE_MARGIN
        return EnrolmentRecord.Lease(parts.holder, now + minOf(maxOf(limits.lease, step), LEASE_MAX))
    }

    /** From a record to its end; `null` where another process has changed it meanwhile. */
    private fun ending(record: EnrolmentRecord): KeyOutcome? {
        var kept = record
        val machine = EnrolmentMachine(record, limits)
        var action = machine.began(now)
        for (step in 0 until STEPS_MAX) {
            if (isStopped) break
            val next = machine.record.copy(lease = if (action.isLast) null else lease())
            try {
                if (parts.change { if (it == kept) next else null } != next) return null
                kept = next
            } catch (error: IOException) {
                // A key that was made is not given up because a disk is full.
                if (next.phase !is Phase.Attested) throw error
                parts.say("the record can't be written")
            }
            if (isStopped) break
            val last = action
            when (last) {
                is Action.Done -> {
                    parts.say("enrolled")
                    return KeyOutcome.Key(last.alias, last.keyId)
                }
                is Action.Stop -> {
                    parts.sayHeld(last.hold)
                    return KeyOutcome.None(Absence.Held(last.hold))
                }
                else -> action = perform(last, machine, step)
            }
        }
        return KeyOutcome.None(Absence.Enrolling)
    }

    private fun perform(action: Action, machine: EnrolmentMachine, step: Int): Action = when (action) {
        Action.AskChallenge -> {
            val result = parts.calls.enrolmentChallenge()
            when (result) {
                is GatewayCalls.Result.Came -> {
                    val until = now + result.value.life
                    val grant = Grant(result.value.texts[0], context?.let { base64(it) }, until)
                    machine.challengeReceived(grant, "portcullis." + hex(8), now)
                }
                is GatewayCalls.Result.Failed -> machine.challengeFailed(result.failure, now, parts.jitter())
            }
        }
        is Action.MakeKey -> {
            // The first step goes on where an earlier try, or process, stood.
            val result = parts.keys.generate(action.alias, sha256(action.grant.data), isFresh = step > 0)
            when (result) {
                is TimedKeys.Result.Made -> machine.keyMade(now)
                is TimedKeys.Result.Failed -> machine.keyFailed(result.kind, now, parts.jitter())
            }
        }
        is Action.Register -> {
            val result = parts.keys.describe(action.alias)
            when (result) {
                is TimedKeys.Result.Made -> registered(result.value, action.grant, machine)
                is TimedKeys.Result.Failed ->
                    if (result.kind == KeyFailure.Kind.MISSING) {
                        parts.say("key lost: key-lost")
                        machine.keyMissing(now, parts.jitter())
                    } else {
                        machine.keyFailed(result.kind, now, parts.jitter())
                    }
            }
        }
        is Action.Done, is Action.Stop -> action
    }

    private fun registered(key: TimedKeys.Description, grant: Grant, machine: EnrolmentMachine): Action {
        val result = register(key, grant)
        return when (result) {
            is GatewayCalls.Result.Came -> machine.registered(key.keyId, now)
            is GatewayCalls.Result.Failed -> {
                val refusal = (result.failure as? CallFailure.Refused)?.refusal
                if (refusal?.next == Refusal.Next.ENROL) parts.say("key lost: " + refusal.reason)
                // A token that could not be had now may be had soon.
                val mayPass = refusal?.next == Refusal.Next.GET_TOKEN && parts.tokens.canBeMade
                val failure =
                    if (mayPass) CallFailure.Unreachable(result.failure.retryAfter) else result.failure
                machine.registerFailed(failure, now, parts.jitter())
            }
        }
    }

    /** Sends the key; with a token of Google Play where the gateway asks for one. */
    private fun register(key: TimedKeys.Description, grant: Grant): GatewayCalls.Result<Unit> {
        val hash = sha256(grant.data)
        var token = if (parts.enrolsWithToken) parts.tokens.made(hash, limits.deviceTokenWait) else null
        var result = parts.calls.register(key, grant, token?.text)
        for (shown in 1..PortcullisLimits.TOKENS_SHOWN) {
            val failure = (result as? GatewayCalls.Result.Failed)?.failure as? CallFailure.Refused ?: return result
            if (failure.refusal.next != Refusal.Next.GET_TOKEN || token?.outcome?.isMissing == true) return result
            token = parts.tokens.made(hash, limits.deviceTokenWait)
            if (token.text == null) return result
            result = parts.calls.register(key, grant, token.text)
        }
        return result
    }

    private companion object {
        val RANDOM = SecureRandom()
        /** The most steps of one enrolment. */
        const val STEPS_MAX = 32
        /** How often a record is written that another process has changed. */
        const val LOSSES_MAX = 8
        const val REFUSED_MAX = 16
        const val LEASE_MAX = 3_600_000L
        /** How much longer a lease is at least than the longest step. */
        const val LEASE_MARGIN = 30_000L

        fun hex(count: Int): String {
            val bytes = ByteArray(count)
            RANDOM.nextBytes(bytes)
            return bytes.joinToString("") { "%02x".format(it) }
        }
    }
}
