package portcullis.client.driver

import java.io.IOException
import java.io.InterruptedIOException
import portcullis.client.Absence
import portcullis.client.NO_CONTENT
import portcullis.client.Outcome
import portcullis.client.PortcullisAnswer
import portcullis.client.PortcullisLimits
import portcullis.client.PortcullisRequest
import portcullis.client.PortcullisResponse
import portcullis.client.Proof
import portcullis.client.SignedRequest
import portcullis.client.Step
import portcullis.client.machine.Patience
import portcullis.client.machine.RequestMachine
import portcullis.client.readAtMost

/** Sends requests, or signs them for another HTTP stack. */
internal class Sender(private val driver: RequestDriver) {
    private val limits get() = driver.limits

    fun send(request: PortcullisRequest): Outcome =
        try {
            exchange(request)
        } catch (error: IOException) {
            Outcome.Failed(error)
        } catch (error: InterruptedException) {
            Thread.currentThread().interrupt()
            Outcome.Failed(InterruptedIOException("the thread was interrupted"))
        }

    private fun exchange(request: PortcullisRequest): Outcome {
        var draft = driver.draft(request)
        var machine = driver.machine(draft, request.requiresProof, Patience(limits, request.timeout))
        var attempts = 0
        var redirects = 0
        while (true) {
            val proven = driver.prove(draft, machine)
            // What an interrupted thread could not wait for is no reason to go without it.
            if (Thread.interrupted()) throw InterruptedException()
            val absence = (proven.proof as? Proof.None)?.absence
            if (request.requiresProof && absence != null) {
                if (absence == Absence.RequestUnfit) return Outcome.Unfit(null)
                val step = machine.remained(absence, driver.clock.now())
                if (!driver.waits(step, machine)) return Outcome.Unproven(absence)
                continue
            }
            attempts += 1
            val answer = try {
                driver.transport.exchange(
                    draft.method, GatewayCalls.url(draft.place), proven.fields, draft.content, limits.readWait
                )
            } finally {
                proven.end()
            }
            val step = driver.settle(answer, draft, proven, machine)
            val isFollowed = redirects < limits.redirects
            val next = if (isFollowed) draft.redirected(answer.status, answer.field("Location")) else null
            if (next != null) {
                redirects += 1
                draft = next
                machine = driver.machine(draft, request.requiresProof, machine.patience)
            } else if (!driver.waits(step, machine)) {
                val whole = PortcullisAnswer(
                    answer.status, answer.fields, answer.stream, limits.answerBytes, proven.proof, proven.token,
                    driver.refusal(answer, draft), attempts
                )
                return driver.outcome(whole, machine.mayHaveRun)
            }
            // What is left of a short answer is read, so that its connection can be used again.
            try {
                answer.stream.use { it.readAtMost(PortcullisLimits.DRAINED_BYTES) }
            } catch (error: IOException) {
                // Its connection is not.
            }
        }
    }

    // For other HTTP stacks.

    @Throws(IOException::class)
    fun sign(request: PortcullisRequest): SignedRequest {
        val draft = driver.draft(request)
        return signed(draft, driver.machine(draft, request.requiresProof, Patience(limits, request.timeout)), 0)
    }

    private fun signed(draft: Draft, machine: RequestMachine, attempts: Int): SignedRequest {
        val proven = driver.prove(draft, machine)
        // When its answer comes is not known here.
        proven.end()
        return SignedRequest(draft, proven, machine, attempts + 1)
    }

    @Throws(IOException::class)
    fun signAgain(signed: SignedRequest, response: PortcullisResponse): Step {
        val step = driver.settle(response, signed.draft, signed.proven, signed.machine)
        val waits = try {
            driver.waits(step, signed.machine)
        } catch (error: InterruptedException) {
            Thread.currentThread().interrupt()
            throw InterruptedIOException("the thread was interrupted")
        }
        if (waits) return Step.Again(signed(signed.draft, signed.machine, signed.attempts))
        return Step.Final(outcome(signed, response))
    }

    fun learn(signed: SignedRequest, response: PortcullisResponse): Outcome {
        driver.settle(response, signed.draft, signed.proven, signed.machine)
        return outcome(signed, response)
    }

    private fun outcome(signed: SignedRequest, response: PortcullisResponse): Outcome {
        val answer = PortcullisAnswer(
            response.status, response.fields, NO_CONTENT, limits.answerBytes, signed.proof, signed.proven.token,
            driver.refusal(response, signed.draft), signed.attempts
        )
        return driver.outcome(answer, signed.machine.mayHaveRun)
    }
}
