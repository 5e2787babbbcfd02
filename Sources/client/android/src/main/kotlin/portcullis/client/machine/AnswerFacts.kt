package portcullis.client.machine

import java.text.ParsePosition
import java.text.SimpleDateFormat
import java.util.Locale
import java.util.TimeZone
import portcullis.client.PortcullisResponse
import portcullis.client.ProofFields
import portcullis.client.Refusal
import portcullis.client.SigningRequirement
import portcullis.client.SigningRequirement.Challenge
import portcullis.client.SigningRequirement.Form
import portcullis.client.lowered

/** What the head of an answer says. */
internal class AnswerFacts(
    val status: Int,
    /** What the gateway refused, where the answer is its own. */
    val refusal: Refusal? = null,
    /** How long the gateway wants the client to wait, in milliseconds. */
    val retryAfter: Long? = null,
    /** What it says about the route. */
    val lesson: RouteLesson? = null,
    /** What would be next if the rule enforced, about which key, and why. */
    val next: Refusal.Next? = null,
    val nextKeyId: String? = null,
    val nextReason: String? = null
) {
    companion object {
        const val NEXT = "App-Attest-Next"
        const val ERROR = "App-Attest-Error"
        const val CHALLENGE = "App-Attest-Challenge"
        private const val AUTHENTICATE = "WWW-Authenticate"

        /** What an answer says to a request; nothing where it comes from elsewhere, or out of a cache. */
        fun of(response: PortcullisResponse, isOwn: Boolean, now: Long): AnswerFacts {
            if (!isOwn || response.isCached) return AnswerFacts(response.status)
            val own = own(response)
            if (own != null) {
                return AnswerFacts(response.status, own.first, retryAfter(response, now), own.second)
            }
            val item = FieldItem.of(response.field(NEXT)) ?: return AnswerFacts(response.status)
            val next = Refusal.Next.of(item.word) ?: return AnswerFacts(response.status)
            return AnswerFacts(
                response.status, lesson = RouteLesson.of(item::get, observes = true), next = next,
                nextKeyId = item["key"], nextReason = item["error"]
            )
        }

        /**
         * The refusal and lesson of an answer of the gateway's own: one with `App-Attest-Error`, or a 401 with
         * `WWW-Authenticate: AppAttest`. Anything else says nothing about keys.
         */
        fun own(response: PortcullisResponse): Pair<Refusal, RouteLesson?>? {
            // The gateway's own answers are `no-store`. One with an age comes out of a shared cache, which keeps it
            // all the same, and is about another request (RFC 9111 §5.1).
            if (response.field("Age") != null) return null
            val error = FieldItem.of(response.field(ERROR))
            val parameters =
                if (response.status == 401 || error != null) appAttestParameters(response.field(AUTHENTICATE)) else null
            val lesson = parameters?.let { found -> RouteLesson.of({ found[it] }, observes = false) }
            val tokens = words(parameters?.get("tokens"))
            if (error != null) return Pair(Refusal(error.word, next(error["next"]), tokens), lesson)
            val reason = parameters?.get("error") ?: return null
            val isToSign = "next" !in parameters && "challenge" in parameters
            val next = if (isToSign) Refusal.Next.SIGN_AGAIN else next(parameters["next"])
            return Pair(Refusal(reason, next, tokens), lesson)
        }

        /** What is not known is nothing: a newer gateway has a step that this client does not know. */
        private fun next(word: String?) = Refusal.Next.of(word) ?: Refusal.Next.NONE

        /** `Retry-After` in milliseconds: whole seconds, or a date (RFC 9110 §10.2.3); `null` for none. */
        fun retryAfter(response: PortcullisResponse, now: Long): Long? {
            val text = response.field("Retry-After")?.trim() ?: return null
            if (text == "") return null
            if (text.all { it in '0'..'9' }) return if (text.length <= 9) text.toLong() * 1000 else null
            val time = httpDate(text) ?: return null
            // From the answer's own time, so that the phone's clock does not matter.
            return maxOf(0, time - (httpDate(response.field("Date")) ?: now))
        }

        private val FORMATS =
            listOf("EEE, dd MMM yyyy HH:mm:ss zzz", "EEEE, dd-MMM-yy HH:mm:ss zzz", "EEE MMM d HH:mm:ss yyyy")

        /** A date in one of the three forms of RFC 9110 §5.6.7, in milliseconds since 1970. */
        fun httpDate(text: String?): Long? {
            if (text == null || text.length > 40) return null
            for (form in FORMATS) {
                val format = SimpleDateFormat(form, Locale.US)
                format.timeZone = TimeZone.getTimeZone("GMT")
                format.isLenient = false
                val place = ParsePosition(0)
                val date = format.parse(text.trim(), place)
                if (date != null && place.index == text.trim().length) return date.time
            }
            return null
        }
    }
}

internal fun words(text: String?): List<String> = (text ?: "").split(' ').filter { it.isNotEmpty() }

/** What an answer says about what its route signs. */
internal class RouteLesson private constructor(
    /** `null` where nothing is signed. */
    val form: Form?,
    private val accepts: List<String>?,
    private val window: Int,
    private val asksToken: Boolean,
    /** Whether the rule forwards what it would refuse. */
    val observes: Boolean,
    /** Names that are not the usual ones; `null` where the answer does not say. */
    val fields: ProofFields?,
    val challengePointer: String?
) {
    /** What the route asks, by this and by what was known before; `null` for nothing. */
    fun over(known: SigningRequirement?): SigningRequirement? {
        if (form == null) return null
        val before = known ?: SigningRequirement()
        val challenge = when {
            form is Form.Lines && "challenge" !in form.parts -> Challenge.NONE
            form is Form.Lines && before.challenge == Challenge.NONE -> Challenge.REQUIRED
            form == Form.ChallengeText -> Challenge.REQUIRED
            else -> before.challenge
        }
        return before.copy(
            form = form, challenge = challenge, window = window, asksToken = asksToken,
            // The other forms have the challenge in its field.
            challengePointer = if (form != Form.Content) null else challengePointer ?: before.challengePointer,
            takesAssertions = accepts?.contains("assertion") ?: before.takesAssertions,
            takesSessions = accepts?.contains("session") ?: before.takesSessions,
            fields = fields ?: before.fields
        )
    }

    companion object {
        private val PARTS = setOf("method", "target", "body", "challenge")

        /** `null` where nothing is said of what is signed, or in words that are not known. */
        fun of(parameter: (String) -> String?, observes: Boolean): RouteLesson? {
            val sign = words(parameter("sign") ?: return null)
            val form: Form? = when {
                sign.isEmpty() -> null
                sign == listOf("content") -> Form.Content
                sign == listOf("challenge-text") -> Form.ChallengeText
                PARTS.containsAll(sign) -> Form.Lines(sign.toSet(), words(parameter("headers")).map { it.lowered() })
                else -> return null
            }
            val window = parameter("counter")?.toIntOrNull() ?: 0
            return RouteLesson(
                form, parameter("accept")?.let { words(it) },
                if (window in 1..SigningRequirement.WINDOW_MAX) window else 0,
                "token" in words(parameter("integrity")), observes,
                parameter("fields")?.let { names(it) }, parameter("challenge_pointer")?.let { unescaped(it) }
            )
        }

        /** `key_id=x-key assertion=x-proof`. What is not known or no name is passed over. */
        private fun names(text: String): ProofFields {
            val found = HashMap<String, String>()
            for (word in words(text)) {
                val name = word.substringAfter('=', "")
                if (FieldReader.isToken(name)) found[word.substringBefore('=')] = name
            }
            val usual = ProofFields()
            return ProofFields(
                found["key_id"] ?: usual.keyId, found["assertion"] ?: usual.assertion,
                found["challenge"] ?: usual.challenge, found["unsupported"] ?: usual.unsupported
            )
        }

        /** A text without its percent-escapes; `null` where they are none. */
        private fun unescaped(text: String): String? {
            val bytes = RequestPlace.decoded(text).toByteArray(Charsets.ISO_8859_1)
            val decoded = String(bytes, Charsets.UTF_8)
            return if (decoded.contains('\uFFFD')) null else decoded
        }
    }
}
