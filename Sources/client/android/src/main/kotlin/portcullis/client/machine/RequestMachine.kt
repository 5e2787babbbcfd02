package portcullis.client.machine

import portcullis.client.Absence
import portcullis.client.PortcullisField
import portcullis.client.PortcullisLimits
import portcullis.client.Proof
import portcullis.client.Refusal
import portcullis.client.SigningRequirement
import portcullis.client.TokenOutcome
import portcullis.client.machine.RouteTable.Knowledge

/**
 * One request's life: which proof it carries, and what its answers mean.
 *
 *     began ──▶ with proof or without ──▶ answered ──▶ deliver
 *       ▲                                    │
 *       └──────────────── again ─────────────┘   at most `maximumAttempts` times
 *
 * To ask what its route signs takes nothing from the tries, nor does a try while its key is enrolled, or while that is
 * held: its time ends both. The driver performs the effects in their order, then the step.
 */
internal class RequestMachine(
    private val limits: PortcullisLimits,
    private val usesSessions: Boolean,
    /** Whether the origin may run it more than once. */
    private val isRepeatable: Boolean,
    /** Whether it is never sent without a proof, not even to ask. */
    private val requiresProof: Boolean,
    /** Whether the app makes tokens of Google Play. */
    private val makesTokens: Boolean,
    val patience: Patience
) {
    /** What the request is to carry. */
    sealed class Want {
        class Assertion(val requirement: SigningRequirement) : Want()
        /** A session's signature; an assertion where there is no session and the route takes one. */
        class Session(val requirement: SigningRequirement) : Want()
        class Nothing(val absence: Absence) : Want()
    }

    /** What is changed because of an answer. */
    sealed class Effect {
        class Learn(val lesson: RouteLesson) : Effect()
        /** The route compares counters strictly. */
        object ExpectStrict : Effect()
        /** The route has the usual names, and the challenge in its field. */
        object ExpectUsualPlaces : Effect()
        /** The route takes no sessions. */
        object ExpectAssertions : Effect()
        class ForgetKey(val keyId: String, val reason: String) : Effect()
        object ForgetChallenges : Effect()
        object ForgetSession : Effect()
        /** Enrols a key beside everything else. */
        object Enrol : Effect()
    }

    /** What is done with an answer. */
    sealed class Step {
        /** It is the app's. */
        object Deliver : Step()
        object Again : Step()
        /** When an enrolment may begin, or the gateway wants it. */
        class AgainAfter(val time: Long) : Step()
    }

    class Verdict(val effects: List<Effect>, val step: Step)

    private enum class Insistence { NONE, ON_NOTHING, ON_ASSERTION }

    private var tries = 0
    private var questions = 0
    private var unfinished = 0
    private var held = 0
    private var tokensShown = 0
    private var hasAskedBare = false
    private var hasForgottenKey = false
    private var hasBeenRefused = false
    private var insistence = Insistence.NONE
    /** What was signed last. */
    private var asked: SigningRequirement? = null

    /** Whether the last answer refused a copy of a request that may run once only. */
    var mayHaveRun = false
        private set

    /** Whether it waits for its key and the endpoints: not where its rule observes and nothing was refused yet. */
    var waits = true
        private set

    /** What the request is to carry, now. */
    fun began(knowledge: Knowledge, isOwnOrigin: Boolean, observes: Boolean): Want {
        waits = !observes || hasBeenRefused || requiresProof
        asked = null
        if (!isOwnOrigin) return Want.Nothing(Absence.OtherOrigin)
        if (insistence == Insistence.ON_NOTHING) return Want.Nothing(Absence.RouteUnknown)
        return when (knowledge) {
            Knowledge.Unknown -> Want.Nothing(Absence.RouteUnknown)
            Knowledge.AsksNothing -> Want.Nothing(Absence.NotAsked)
            is Knowledge.Asks -> {
                val requirement = knowledge.requirement
                asked = requirement
                when {
                    usesSessions && insistence != Insistence.ON_ASSERTION && requirement.fitsSession ->
                        Want.Session(requirement)
                    requirement.takesAssertions -> Want.Assertion(requirement)
                    else -> Want.Nothing(Absence.RequestUnfit)
                }
            }
        }
    }

    /** What an answer means. */
    fun answered(facts: AnswerFacts, proof: Proof, token: TokenOutcome, now: Long): Verdict {
        insistence = Insistence.NONE
        mayHaveRun = false
        count(proof)
        if (token == TokenOutcome.SENT) tokensShown += 1
        val effects = ArrayList<Effect>()
        if (proof is Proof.None && proof.absence == Absence.OtherOrigin) return Verdict(effects, Step.Deliver)
        val refusal = facts.refusal
        if (refusal != null) {
            hasBeenRefused = true
            return Verdict(effects, refused(refusal, facts, proof, token, now, effects))
        }
        if (facts.lesson != null) effects.add(Effect.Learn(facts.lesson))
        // An observing rule says what it would have refused. What speaks of another key comes out of a cache.
        if (facts.next == Refusal.Next.ENROL && (facts.nextKeyId == null || facts.nextKeyId == proof.key)) {
            proof.key?.let { effects.add(Effect.ForgetKey(it, "observed")) }
            effects.add(Effect.Enrol)
        }
        // So that the second request has a proof. The effect does nothing where a key is there.
        if (facts.next == Refusal.Next.SIGN_AGAIN && proof is Proof.None && proof.absence == Absence.RouteUnknown) {
            effects.add(Effect.Enrol)
        }
        // Without that, an ended session would be used for as long as it was to live.
        if (facts.next == Refusal.Next.SIGN_AGAIN && proof is Proof.Session && facts.nextReason != null) {
            addEffects(facts.nextReason, effects)
        }
        return Verdict(effects, Step.Deliver)
    }

    /** What is done with a request that must not be sent without a proof, and has none. */
    fun remained(absence: Absence, now: Long): Step {
        val proof = Proof.None(absence)
        count(proof)
        return if (mayRepeat) repetition(proof, null, now) else Step.Deliver
    }

    private fun count(proof: Proof) {
        val absence = (proof as? Proof.None)?.absence
        when (absence) {
            Absence.RouteUnknown, Absence.NotAsked -> questions += 1
            Absence.Enrolling -> unfinished += 1
            is Absence.Held -> held += 1
            else -> tries += 1
        }
    }

    /** With one try, a request can still ask, once, before it. */
    private val mayRepeat: Boolean
        get() = tries < limits.maximumAttempts && questions < maxOf(limits.maximumAttempts, 2) &&
            unfinished < PortcullisLimits.UNFINISHED_MAX && held < PortcullisLimits.HELD_MAX

    private fun refused(
        refusal: Refusal, facts: AnswerFacts, proof: Proof, token: TokenOutcome, now: Long, effects: MutableList<Effect>
    ): Step {
        val lesson = facts.lesson
        if (lesson != null) {
            if (isMisplaced(refusal.reason, proof, lesson)) effects.add(Effect.ExpectUsualPlaces)
            effects.add(Effect.Learn(lesson))
        }
        // A counter below another one is refused for the same reason, and did not run: the two can't be told apart.
        if (!isRepeatable && proof.key != null && refusal.reason in SIGNS_OF_A_COPY) {
            mayHaveRun = true
            addEffects(refusal.reason, effects)
            return Step.Deliver
        }
        if (refusal.reason == "signature-mismatch") return mismatched(proof, lesson)
        val key = proof.key
        when (refusal.next) {
            Refusal.Next.ENROL -> {
                if (key == null) return Step.Deliver
                effects.add(Effect.ForgetKey(key, refusal.reason))
                // A second key for one request would not be the last.
                val isFirst = !hasForgottenKey
                hasForgottenKey = true
                return if (mayRepeat && isFirst) Step.Again else Step.Deliver
            }
            Refusal.Next.SIGN_AGAIN -> {
                addEffects(refusal.reason, effects)
                return if (mayRepeat) repetition(proof, lesson, now) else Step.Deliver
            }
            Refusal.Next.RETRY_LATER -> {
                // Refused before it was forwarded, so that to send it again does nothing twice.
                val wait = facts.retryAfter ?: return Step.Deliver
                val isShort = wait / 1000 * 1000 <= minOf(limits.retryWait, patience.left)
                return if (mayRepeat && isShort) Step.AgainAfter(now + wait) else Step.Deliver
            }
            Refusal.Next.FIX_CLIENT -> {
                // An older gateway of the fleet takes no key id beside a session.
                val isForSession = proof is Proof.Session && refusal.reason == "assertion-malformed"
                if (!isForSession || !mayRepeat) return Step.Deliver
                insistence = Insistence.ON_ASSERTION
                effects.add(Effect.ForgetSession)
                return Step.Again
            }
            Refusal.Next.GET_TOKEN -> {
                // The rule is newer than what was known of it, or Google's word about the token is not good enough.
                val isAsked = lesson?.over(asked)?.asksToken ?: asked?.asksToken ?: false
                val isOurs = makesTokens && isAsked && !token.isMissing && tokensShown < PortcullisLimits.TOKENS_SHOWN
                return if (isOurs && mayRepeat) Step.Again else Step.Deliver
            }
            Refusal.Next.NONE -> return Step.Deliver
        }
    }

    /** Whether the gateway did not see a proof that the request carried, and does not say where it looks. */
    private fun isMisplaced(reason: String, proof: Proof, lesson: RouteLesson): Boolean =
        proof is Proof.Assertion && lesson.fields == null &&
            (reason == "assertion-missing" || reason == "challenge-missing" && lesson.challengePointer == null)

    private fun addEffects(reason: String, effects: MutableList<Effect>) {
        when (reason) {
            "challenge-unknown", "challenge-expired" -> effects.add(Effect.ForgetChallenges)
            "counter-replayed" -> effects.add(Effect.ExpectStrict)
            "session-refused" -> {
                insistence = Insistence.ON_ASSERTION
                effects.add(Effect.ExpectAssertions)
            }
            in ENDS_OF_SESSIONS -> {
                insistence = Insistence.ON_ASSERTION
                effects.add(Effect.ForgetSession)
                // The gateway has started again: an assertion must not have a challenge of before.
                if (reason == "session-unknown") effects.add(Effect.ForgetChallenges)
            }
        }
    }

    /** Whether a request that was told to sign again can carry more than it did. */
    private fun repetition(proof: Proof, lesson: RouteLesson?, now: Long): Step {
        val absence = (proof as? Proof.None ?: return Step.Again).absence
        return when (absence) {
            Absence.RouteUnknown, Absence.NotAsked -> if (lesson?.form == null) Step.Deliver else Step.Again
            Absence.Enrolling -> if (patience.left > 0) Step.Again else Step.Deliver
            Absence.ChallengeUnavailable -> Step.Again
            is Absence.Held -> {
                // The rule insists, so a short wait is better than a failure.
                val isShort = absence.hold.until - now <= minOf(limits.enrolmentWait, patience.left)
                if (isShort) Step.AgainAfter(absence.hold.until) else Step.Deliver
            }
            else -> Step.Deliver
        }
    }

    /**
     * Not what the rule signs: the plan may be outdated. The refusal says what the rule signs; that of an older gateway
     * does not, and says it to a request without a proof. Either helps once.
     */
    private fun mismatched(proof: Proof, lesson: RouteLesson?): Step {
        if (proof !is Proof.Assertion || hasAskedBare || !mayRepeat) return Step.Deliver
        if (lesson?.form != null) {
            // The same bytes would be signed again.
            if (asked != null && lesson.over(asked) == asked) return Step.Deliver
        } else {
            if (requiresProof) return Step.Deliver
            insistence = Insistence.ON_NOTHING
        }
        hasAskedBare = true
        return Step.Again
    }

    companion object {
        /** A copy is refused for one of them: the proof came before. */
        private val SIGNS_OF_A_COPY = setOf("counter-replayed", "challenge-spent", "session-replayed")
        private val ENDS_OF_SESSIONS = setOf("session-unknown", "session-expired", "session-mismatch")
        private val IDEMPOTENT = setOf("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE")

        /** Whether a request may run more than once (RFC 9110 §9.2.2), or the origin tells a second run apart. */
        fun isRepeatable(method: String, fields: List<PortcullisField>): Boolean =
            method in IDEMPOTENT ||
                fields.any { it.name.equals("Idempotency-Key", ignoreCase = true) && it.value.isNotBlank() }
    }
}
