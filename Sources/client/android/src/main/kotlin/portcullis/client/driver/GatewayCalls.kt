package portcullis.client.driver

import java.io.IOException
import java.net.URL
import portcullis.client.PortcullisClock
import portcullis.client.PortcullisContent
import portcullis.client.PortcullisField
import portcullis.client.PortcullisLimits
import portcullis.client.PortcullisResponse
import portcullis.client.PortcullisTransport
import portcullis.client.machine.AnswerFacts
import portcullis.client.machine.CallFailure
import portcullis.client.machine.Grant
import portcullis.client.machine.Json
import portcullis.client.machine.OwnFields
import portcullis.client.machine.RequestPlace
import portcullis.client.machine.base64
import portcullis.client.machine.number
import portcullis.client.machine.text
import portcullis.client.machine.texts
import portcullis.client.readAtMost

/** Calls of the gateway's own endpoints. Each ends after [PortcullisLimits.callTime]. */
internal class GatewayCalls(
    private val endpoints: RequestPlace,
    private val transport: PortcullisTransport,
    private val limits: PortcullisLimits,
    private val clock: PortcullisClock
) {
    /** What a call came to. */
    sealed class Result<T> {
        class Came<T>(val value: T) : Result<T>()
        class Failed<T>(val failure: CallFailure) : Result<T>()
    }

    /** Challenges, and for how long they are good, in milliseconds. */
    class Challenges(val texts: List<String>, val life: Long)

    /** A whole answer. */
    class Answer(val head: PortcullisResponse, val content: ByteArray) {
        fun document(): Map<*, *>? = Json.objectOf(String(content, Charsets.UTF_8))
    }

    private val calls = TimedCalls(CALLS_MAX)

    /** Where an endpoint is. */
    fun place(name: String): RequestPlace = endpoints.at(endpoints.target.trimEnd('/') + "/" + name)

    /** Challenges for assertions. */
    fun challenges(count: Int): Result<Challenges> =
        challenges(linkedMapOf("purpose" to "assertion", "count" to count))

    /** One for an enrolment. */
    fun enrolmentChallenge(): Result<Challenges> = challenges(linkedMapOf<String, Any>("purpose" to "enrolment"))

    private fun challenges(question: Map<String, Any>): Result<Challenges> = read(post("challenges", question)) {
        val texts = it.texts("challenges")
        val life = it.number("expires_in")
        // Each is written into a field.
        if (texts.isNullOrEmpty() || life == null || !(life > 0 && life < 1e9) || !texts.all(FORM::matches)) null
        else Challenges(texts, (life * 1000).toLong())
    }

    /** Brings a key. */
    fun register(key: TimedKeys.Description, grant: Grant, token: String?): Result<Unit> {
        val question = linkedMapOf<String, Any>(
            "platform" to "android", "key_id" to key.keyId, "chain" to key.chain.map { base64(it) },
            "challenge" to grant.challenge
        )
        if (grant.context != null) question["context"] = grant.context
        // Something between app and gateway may answer with a page of its own.
        return read(post("keys", question, token)) { if (it.text("key_id") != null) Unit else null }
    }

    private fun <T : Any> read(answer: Answer?, value: (Map<*, *>) -> T?): Result<T> {
        if (answer == null) return Result.Failed(CallFailure.Unreachable(null))
        if (answer.head.status !in 200..299) return Result.Failed(failure(answer.head))
        val found = answer.document()?.let(value) ?: return Result.Failed(CallFailure.Unreachable(null))
        return Result.Came(found)
    }

    /** Of what is not the gateway's answer only `Retry-After` is obeyed. */
    fun failure(head: PortcullisResponse): CallFailure {
        val retryAfter = AnswerFacts.retryAfter(head, clock.now())
        val refusal = AnswerFacts.own(head)?.first
        return if (refusal == null || head.status >= 500) CallFailure.Unreachable(retryAfter)
        else CallFailure.Refused(refusal, retryAfter)
    }

    private fun post(name: String, question: Map<String, Any>, token: String? = null): Answer? {
        val fields = arrayListOf(
            PortcullisField("Content-Type", "application/json"), PortcullisField("Accept", "application/json")
        )
        if (token != null) fields.add(PortcullisField(OwnFields.TOKEN, token))
        return answer("POST", place(name), fields, Json.text(question), PortcullisLimits.ENDPOINT_BYTES)
    }

    /** The whole answer; `null` where none came in time, or one that is too long. */
    fun answer(
        method: String, place: RequestPlace, fields: List<PortcullisField>, content: String, bytesMax: Int
    ): Answer? {
        val work = calls.begin {
            try {
                val body = PortcullisContent.of(content.toByteArray(Charsets.UTF_8))
                val wait = minOf(PortcullisLimits.IDLE_TIME, limits.callTime)
                val answer = transport.exchange(method, url(place), fields, body, wait)
                val bytes = answer.stream.use { it.readAtMost(bytesMax) }
                listOf(if (bytes == null) null else Answer(answer, bytes))
            } catch (error: IOException) {
                listOf<Answer?>(null)
            } catch (error: RuntimeException) {
                // An app's own transport, or one of a phone.
                listOf<Answer?>(null)
            }
        }
        return work?.value(limits.callTime)?.first()
    }

    companion object {
        private const val CALLS_MAX = 16
        private val FORM = Regex("[!-~]{1,256}")

        fun url(place: RequestPlace) = URL(place.scheme, place.host, place.port, place.target)
    }
}
