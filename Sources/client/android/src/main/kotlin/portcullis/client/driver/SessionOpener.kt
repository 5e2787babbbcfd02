package portcullis.client.driver

import java.io.IOException
import portcullis.client.PortcullisClock
import portcullis.client.PortcullisContent
import portcullis.client.PortcullisLimits
import portcullis.client.Proof
import portcullis.client.Refusal
import portcullis.client.machine.AnswerFacts
import portcullis.client.machine.CallFailure
import portcullis.client.machine.Opening

/** Asks the gateway for a session, with an assertion. */
internal class SessionOpener(
    private val calls: GatewayCalls,
    private val clock: PortcullisClock,
    private val say: (String) -> Unit
) {
    fun open(prover: Prover): SessionKeeper.Opened {
        var hasForgottenKey = false
        for (attempt in 1..PortcullisLimits.OPENING_TRIES) {
            val draft = Draft("POST", calls.place("sessions"), emptyList(), PortcullisContent.NONE, null)
            val proven = try {
                prover.forOpening(draft)
            } catch (error: IOException) {
                break
            }
            val key = proven.proof as? Proof.Assertion ?: break
            val answer = calls.answer(
                draft.method, draft.place, proven.fields, "", PortcullisLimits.ENDPOINT_BYTES
            )
            proven.end()
            if (answer == null) return SessionKeeper.Opened.Failed(null, true)
            val facts = AnswerFacts.of(answer.head, true, clock.now())
            val refusal = facts.refusal
            // The older ones, before the one that came.
            if (refusal?.next == Refusal.Next.SIGN_AGAIN) prover.challenges.clear()
            answer.head.field(AnswerFacts.CHALLENGE)?.let { prover.challenges.add(it) }
            if (answer.head.status in 200..299) {
                val opening = answer.document()?.let { Opening.of(it, key.keyId) }
                return if (opening != null) SessionKeeper.Opened.Session(opening)
                else SessionKeeper.Opened.Failed(null, true)
            }
            say("no session: " + (refusal?.reason ?: "no answer"))
            when (refusal?.next) {
                Refusal.Next.SIGN_AGAIN -> Unit
                Refusal.Next.ENROL -> {
                    // A second key for one session would not be the last.
                    if (hasForgottenKey) return SessionKeeper.Opened.Failed(null, true)
                    hasForgottenKey = true
                    prover.forget(key.keyId, refusal.reason)
                }
                else -> {
                    val failure = calls.failure(answer.head)
                    val mayPass = failure !is CallFailure.Refused || failure.refusal.next == Refusal.Next.RETRY_LATER
                    return SessionKeeper.Opened.Failed(failure.retryAfter, mayPass)
                }
            }
        }
        return SessionKeeper.Opened.Failed(null, true)
    }
}
