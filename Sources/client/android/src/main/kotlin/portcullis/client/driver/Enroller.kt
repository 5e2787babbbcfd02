package portcullis.client.driver

import java.io.IOException
import portcullis.client.Absence
import portcullis.client.Hold
import portcullis.client.PortcullisLimits
import portcullis.client.machine.EnrolmentMachine
import portcullis.client.machine.EnrolmentRecord
import portcullis.client.machine.EnrolmentRecord.Phase

/** An enrolled key, or why there is none. */
internal sealed class KeyOutcome {
    class Key(val alias: String, val keyId: String) : KeyOutcome()
    class None(val absence: Absence) : KeyOutcome()
}

/**
 * Keeps the one key: enrols it when it is asked for, once for all who ask, and forgets it when it is refused.
 * [EnrolmentRun] does the enrolling.
 */
internal class Enroller(private val parts: EnrolmentRun.Parts, private var context: ByteArray?) {
    private enum class UserChange { RESET, SIGN_OUT }

    private var key: KeyOutcome.Key? = null
    private var hold: Hold? = null
    private var running: EnrolmentRun? = null
    /** When the record was read last. */
    private var looked: Long? = null
    /** What a user did that could not be written yet. */
    private var due: UserChange? = null
    private var isClosed = false

    private val limits: PortcullisLimits get() = parts.limits
    private val now: Long get() = parts.clock.now()

    /** Whether the phone counts as one that can't attest, by the record that was seen last. */
    val isDeviceBroken: Boolean get() = parts.isDeviceBroken

    /** The enrolled key. Without one, an enrolment begins or goes on, and is waited for. */
    fun key(milliseconds: Long): KeyOutcome {
        val work = synchronized(this) {
            if (isClosed) return KeyOutcome.None(Absence.Closed)
            try {
                look()
            } catch (error: IOException) {
                return KeyOutcome.None(Absence.RecordUnavailable)
            }
            key?.let { return it }
            hold?.let { if (it.until > now) return KeyOutcome.None(Absence.Held(it)) }
            (running ?: begin()).work
        }
        return work.value(milliseconds) ?: KeyOutcome.None(Absence.Enrolling)
    }

    private fun begin(): EnrolmentRun {
        val run = EnrolmentRun(parts, context)
        running = run
        Threads.run {
            // A record that could not be changed must not bring the old key back.
            val outcome = try {
                if (applyDue()) run.outcome() else KeyOutcome.None(Absence.RecordUnavailable)
            } catch (error: RuntimeException) {
                parts.say("the enrolment ended: " + error.javaClass.simpleName)
                KeyOutcome.None(Absence.RecordUnavailable)
            }
            ended(run, outcome)
        }
        return run
    }

    private fun ended(run: EnrolmentRun, outcome: KeyOutcome) {
        synchronized(this) {
            // Those who waited for a run that was stopped were told when it was stopped.
            if (running !== run) return
            running = null
            looked = now
            when (outcome) {
                is KeyOutcome.Key -> if (parts.isRefused(outcome.keyId)) looked = null else {
                    key = outcome
                    hold = null
                }
                is KeyOutcome.None -> (outcome.absence as? Absence.Held)?.let { hold = it.hold }
            }
        }
        run.work.end(outcome)
    }

    /** Reads, at first and now and then, what this or other processes have written. */
    private fun look() {
        val age = looked?.let { now - it }
        // Less than zero after the clock was set back.
        if (age != null && age >= 0 && (age < PortcullisLimits.LOOK_EVERY || key == null && hold == null)) return
        if (running != null || due != null) return
        val record = parts.read()
        looked = now
        val phase = record.phase
        if (phase is Phase.Enrolled) {
            key = if (parts.isRefused(phase.keyId)) null else KeyOutcome.Key(phase.name, phase.keyId)
            hold = null
        } else {
            key = null
            // A context that is unfit is this client's own, and no record tells of it.
            if (hold?.cause != Hold.Cause.CONTEXT_UNFIT) hold = EnrolmentMachine(record, limits).hold(now)
        }
    }

    /** Forgets a key that was refused, unless another one has taken its place. */
    fun forget(keyId: String, reason: String) {
        parts.refuse(keyId)
        synchronized(this) {
            if (key?.keyId == keyId) key = null
            looked = null
        }
        try {
            parts.forget(keyId, reason)
        } catch (error: IOException) {
            // The next enrolment forgets it.
            parts.say("the record can't be written")
        }
    }

    /** The key is not the record's any more: another process has put one in its place. */
    fun lookAgain(keyId: String) = synchronized(this) {
        if (key?.keyId == keyId) key = null
        looked = null
    }

    /** Forgets a key with which the keystore signs nothing, where a day allows another. Returns whether it did. */
    fun replaceUnfit(keyId: String): Boolean {
        val record = try {
            parts.read()
        } catch (error: IOException) {
            return false
        }
        if (!EnrolmentMachine(record, limits).mayReplaceUnfit(now)) return false
        forget(keyId, "key-failed")
        return true
    }

    // Users.

    /** Returns whether the key was forgotten, or will be. */
    fun reset(context: ByteArray?): Boolean {
        synchronized(this) {
            this.context = context
            stop()
            due = UserChange.RESET
        }
        return apply(UserChange.RESET) ?: true
    }

    /** The next key has no context. An enrolment that has one ends. */
    fun signOut() {
        synchronized(this) {
            if (context != null) {
                context = null
                stop()
            }
            if (due == null) due = UserChange.SIGN_OUT
        }
        apply(UserChange.SIGN_OUT)
    }

    /** Ends what waits. */
    fun close() = synchronized(this) {
        isClosed = true
        stop(Absence.Closed)
    }

    private fun stop(absence: Absence = Absence.Enrolling) {
        key = null
        hold = null
        looked = null
        val run = running ?: return
        running = null
        run.stop()
        run.work.end(KeyOutcome.None(absence))
    }

    /** Whether nothing of a user's is due any more. */
    private fun applyDue(): Boolean {
        val change = synchronized(this) { due } ?: return true
        return apply(change) != null
    }

    /** Returns whether the key was forgotten; `null` where the record can't be written now. */
    private fun apply(change: UserChange): Boolean? {
        var isForgotten = false
        try {
            parts.change { record ->
                val machine = EnrolmentMachine(record, limits)
                if (change == UserChange.RESET) {
                    val isRefused = (record.phase as? Phase.Enrolled)?.let { parts.isRefused(it.keyId) } ?: false
                    isForgotten = machine.reset(!isRefused, now)
                } else {
                    machine.signedOut()
                }
                machine.record
            }
        } catch (error: IOException) {
            parts.say("the record can't be written")
            return null
        }
        synchronized(this) { if (due == change) due = null }
        return isForgotten
    }
}
