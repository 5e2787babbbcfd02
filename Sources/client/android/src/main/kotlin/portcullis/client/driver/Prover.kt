package portcullis.client.driver

import java.io.IOException
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec
import portcullis.client.Absence
import portcullis.client.Hold
import portcullis.client.KeyFailure
import portcullis.client.PortcullisClock
import portcullis.client.PortcullisField
import portcullis.client.PortcullisLimits
import portcullis.client.Proof
import portcullis.client.ProofFields
import portcullis.client.SigningRequirement
import portcullis.client.SigningRequirement.Challenge
import portcullis.client.TokenOutcome
import portcullis.client.machine.ChallengeMachine
import portcullis.client.machine.OwnFields
import portcullis.client.machine.Patience
import portcullis.client.machine.RequestMachine.Want
import portcullis.client.machine.SignedBytes
import portcullis.client.machine.Ticket
import portcullis.client.machine.assertionText
import portcullis.client.machine.base64
import portcullis.client.machine.keyMessage

/** Makes proofs: asks for the key, a challenge or a session, and signs. */
internal class Prover(
    private val packageName: String,
    private val limits: PortcullisLimits,
    private val clock: PortcullisClock,
    private val parts: EnrolmentRun.Parts,
    val enroller: Enroller,
    val challenges: ChallengeSource,
    val sessions: SessionKeeper,
    private val opener: SessionOpener
) {
    /** How long a request waits for what the gateway's endpoints give. */
    private class Waits(val key: Long, val session: Long, val challenge: Long, val isHasty: Boolean)

    private val turnstile = Turnstile()
    /** The key whose last request the keystore refused, and how many in a row. */
    private var unfit: Pair<String, Int>? = null

    private fun waits(waits: Boolean) =
        if (waits) Waits(limits.enrolmentWait, limits.sessionWait, limits.challengeWait, false)
        else Waits(0, 0, PortcullisLimits.OBSERVED_WAIT, true)

    /**
     * A request with what it is to carry, as far as that can be had.
     *
     * @param waits not where its rule only observes.
     */
    @Throws(IOException::class)
    fun proven(draft: Draft, want: Want, waits: Boolean, patience: Patience): Proven = when (want) {
        is Want.Nothing -> bare(draft, want.absence, SigningRequirement())
        is Want.Assertion -> asserted(draft, want.requirement, waits(waits), patience)
        is Want.Session -> {
            val requirement = want.requirement
            val key = enroller.key(0)
            val time = waits(waits)
            // Nor does it wait for a session that the key would open.
            if (key is KeyOutcome.None && !waits) bare(draft, key.absence, requirement)
            else {
                val ready = if (key is KeyOutcome.Key) key else patience.wait(time.key) { enroller.key(it) }
                (ready as? KeyOutcome.Key)?.let { inSession(draft, requirement, it, time, patience) }
                    ?: if (requirement.takesAssertions) asserted(draft, requirement, time, patience)
                    else bare(draft, Absence.ChallengeUnavailable, requirement)
            }
        }
    }

    /** Opens a session, if there is none. */
    fun openSession() {
        val key = enroller.key(0) as? KeyOutcome.Key ?: return
        sessions.ticket(key.keyId, limits.sessionWait) { opener.open(this) }?.let { sessions.ended(it) }
    }

    /** An assertion for the request that opens a session. It has a time of its own. */
    fun forOpening(draft: Draft): Proven =
        asserted(draft, SigningRequirement(), waits(true), Patience(limits, limits.enrolmentWait))

    fun forget(keyId: String, reason: String) {
        enroller.forget(keyId, reason)
        sessions.forgetKey(keyId)
    }

    // Assertions.

    private fun asserted(draft: Draft, requirement: SigningRequirement, waits: Waits, patience: Patience): Proven {
        var failure = KeyFailure.Kind.MISSING
        var lastKey = ""
        var token: TokenSource.Made? = null
        for (attempt in 1..PortcullisLimits.SIGNING_TRIES) {
            val outcome = patience.wait(waits.key) { enroller.key(it) }
            if (outcome is KeyOutcome.None) return bare(draft, outcome.absence, requirement)
            val key = outcome as KeyOutcome.Key
            lastKey = key.keyId
            var challenge: ChallengeMachine.Kept? = null
            if (requirement.needsChallengeField) {
                challenge = patience.wait(waits.challenge) { challenges.challenge(it, waits.isHasty) }
                if (challenge == null && requirement.challenge == Challenge.REQUIRED) {
                    return bare(draft, Absence.ChallengeUnavailable, requirement)
                }
            }
            val own = OwnFields.withoutProof(draft.fields, requirement)
            val settled = OwnFields.settled(own, requirement, !draft.content.isEmpty, draft.digest())
            val bytes = SignedBytes(draft.method, draft.place, settled, draft.digest())
            var data = bytes.clientData(requirement.form, challenge?.text)
                ?: return bare(draft, Absence.RequestUnfit, requirement)
            // Before its turn and its number: no other request waits for Google Play. Bound to what is signed.
            if (requirement.asksToken && (token == null || token.text != null)) {
                token = patience.waitForDevice(limits.deviceTokenWait) { parts.tokens.made(data.hash, it) }
            }
            val turn = turnstile.enter(minOf(limits.strictWait, patience.longest))
            // Others had their turn meanwhile, and a challenge of seconds may have ended.
            val taken = challenge
            if (taken != null && taken.until <= clock.now()) {
                challenge = patience.wait(waits.challenge) { challenges.challenge(it, waits.isHasty) } ?: taken
                data = bytes.clientData(requirement.form, challenge.text) ?: data
            }
            val signed = try {
                sign(key, data.hash, patience)
            } catch (error: IOException) {
                turn?.let { turnstile.leave(it) }
                parts.say("the record can't be written")
                return bare(draft, Absence.RecordUnavailable, requirement)
            }
            if (signed != null && signed is TimedKeys.Result.Made) {
                if (turn != null && requirement.isStrict) turnstile.keep(turn, limits.strictTurn)
                else turn?.let { turnstile.leave(it) }
                synchronized(this) { unfit = null }
                return proven(settled, requirement.fields, key, signed.value, challenge?.text, token, turn)
            }
            turn?.let { turnstile.leave(it) }
            // Another process has put a key in the place of this one.
            if (signed == null) {
                enroller.lookAgain(key.keyId)
                continue
            }
            failure = (signed as TimedKeys.Result.Failed).kind
            if (failure == KeyFailure.Kind.MISSING) forget(key.keyId, "key-lost")
            // It was tried several times, or took too long.
            if (failure == KeyFailure.Kind.TRANSIENT) break
        }
        if (failure == KeyFailure.Kind.BROKEN) refused(lastKey)
        return bare(draft, Absence.KeystoreFailed(failure), requirement)
    }

    private fun proven(
        settled: List<PortcullisField>, names: ProofFields, key: KeyOutcome.Key, assertion: String, challenge: String?,
        token: TokenSource.Made?, turn: Turnstile.Turn?
    ): Proven {
        val fields = ArrayList(settled)
        fields.add(PortcullisField(names.keyId, key.keyId))
        fields.add(PortcullisField(names.assertion, assertion))
        if (challenge != null) fields.add(PortcullisField(names.challenge, challenge))
        token?.text?.let { fields.add(PortcullisField(OwnFields.TOKEN, it)) }
        return Proven(fields, Proof.Assertion(key.keyId), token?.outcome ?: TokenOutcome.NOT_ASKED) {
            turn?.let { turnstile.leave(it) }
        }
    }

    /** The text of an assertion; `null` where the key is not the record's any more. */
    private fun sign(key: KeyOutcome.Key, hash: ByteArray, patience: Patience): TimedKeys.Result<String>? {
        // On disk, or reserved there, before anything is signed with it: no number is given twice.
        val number = parts.nextNumber(key.keyId) ?: return null
        val result = patience.waitForDevice(limits.assertionWait) {
            parts.keys.sign(key.alias, keyMessage(packageName, number, hash), it) { parts.jitter() }
        }
        return when (result) {
            is TimedKeys.Result.Made -> TimedKeys.Result.Made(assertionText(number, result.value))
            is TimedKeys.Result.Failed -> TimedKeys.Result.Failed(result.kind)
        }
    }

    /** Some keys fail for good ("Invalid key blob"), as after an update. After a few requests another one is tried. */
    private fun refused(keyId: String) {
        val requests = synchronized(this) {
            // Another key's refusals say nothing about this one.
            val before = unfit?.let { if (it.first == keyId) it.second else 0 } ?: 0
            (minOf(before, PortcullisLimits.UNFIT_MAX) + 1).also { unfit = Pair(keyId, it) }
        }
        if (requests <= PortcullisLimits.UNFIT_MAX || !enroller.replaceUnfit(keyId)) return
        synchronized(this) { unfit = null }
        sessions.forgetKey(keyId)
    }

    /** A request without a proof. One whose phone can't prove says so. */
    private fun bare(draft: Draft, absence: Absence, requirement: SigningRequirement): Proven {
        if (absence == Absence.OtherOrigin) return Proven(draft.fields, Proof.None(absence))
        val fields = ArrayList(OwnFields.withoutProof(draft.fields, requirement))
        val saysUnsupported = isLasting(absence)
        if (saysUnsupported) fields.add(PortcullisField(requirement.fields.unsupported, "1"))
        return Proven(fields, Proof.None(absence, saysUnsupported))
    }

    /** Whether the phone can't prove this request, nor one that is sent a moment later. */
    private fun isLasting(absence: Absence): Boolean = when (absence) {
        is Absence.KeystoreFailed -> true
        Absence.Enrolling -> enroller.isDeviceBroken
        is Absence.Held -> enroller.isDeviceBroken || absence.hold.cause == Hold.Cause.KEYSTORE_FAILED &&
            absence.hold.until - clock.now() > limits.enrolmentWait
        else -> false
    }

    // Sessions.

    private fun inSession(
        draft: Draft, requirement: SigningRequirement, key: KeyOutcome.Key, waits: Waits, patience: Patience
    ): Proven? {
        val ticket = patience.wait(waits.session) {
            sessions.ticket(key.keyId, it) { opener.open(this) }
        } ?: return null
        val own = OwnFields.withoutProof(draft.fields, requirement)
        val settled = OwnFields.settled(own, requirement, !draft.content.isEmpty, draft.digest())
        val data = SignedBytes(draft.method, draft.place, settled, draft.digest())
            .sessionData(requirement.form, ticket.number)
        if (data == null) {
            sessions.ended(ticket)
            return bare(draft, Absence.RequestUnfit, requirement)
        }
        return Proven(settled + sessionFields(ticket, data), Proof.Session(ticket.opening.keyId), ticket = ticket) {
            sessions.ended(ticket)
        }
    }

    private fun sessionFields(ticket: Ticket, data: ByteArray): List<PortcullisField> {
        val code = Mac.getInstance("HmacSHA256").run {
            init(SecretKeySpec(ticket.opening.secret, "HmacSHA256"))
            doFinal(data)
        }
        val fields = arrayListOf(
            PortcullisField(OwnFields.SESSION, ticket.opening.id),
            PortcullisField(OwnFields.SEQUENCE, ticket.number.toString()),
            PortcullisField(OwnFields.SIGNATURE, base64(code))
        )
        if (ticket.opening.namesKey) fields.add(PortcullisField(ProofFields().keyId, ticket.opening.keyId))
        return fields
    }
}
