package portcullis.client.machine

import portcullis.client.ProofFields
import portcullis.client.SigningRequirement
import portcullis.client.SigningRequirement.Challenge
import portcullis.client.SigningRequirement.Form
import portcullis.client.lowered

/** Why a text is no plan. */
internal class PlanUnfit(message: String) : Exception(message)

/** A path pattern: `/v1/orders`, `/v1/users/\*`, and with two stars at its end any rest, also none. */
internal class PlanPath(text: String) {
    private val hasRest: Boolean
    /** `null` for any one segment that is not empty. */
    private val segments: List<String?>

    init {
        val parts = RequestPlace.parts(text)
        hasRest = parts.isNotEmpty() && parts.last() == "**"
        val fixed = if (hasRest) parts.dropLast(1) else parts
        segments = fixed.map { if (it == "*") null else RequestPlace.decoded(it) }
    }

    fun matches(path: List<String>): Boolean {
        if (if (hasRest) path.size < segments.size else path.size != segments.size) return false
        return segments.indices.all { if (segments[it] == null) path[it].isNotEmpty() else segments[it] == path[it] }
    }
}

/** A rule of a plan: which requests it is for, and what it asks of them; `null` for nothing. */
internal class PlanRule(
    private val hosts: List<String>,
    private val methods: List<String>?,
    private val paths: List<PlanPath>,
    val requirement: SigningRequirement?
) {
    fun matches(method: String, place: RequestPlace): Boolean =
        hosts.any { takes(it, place.comparedHost) } && (methods == null || method in methods) &&
            paths.any { it.matches(place.segments) }

    private fun takes(pattern: String, host: String): Boolean = when {
        pattern == "*" -> true
        pattern.startsWith("*.") -> host.endsWith(pattern.substring(1)) && host.length > pattern.length - 1
        else -> pattern == host
    }
}

/** Reads and writes what a plan says, as `portcullis plan` writes it. */
internal object PlanFile {
    /** Fields that say where a request goes, how long it is and what becomes of its connection. */
    private val FRAMING = setOf(
        "host", "connection", "content-length", "content-type", "content-encoding", "content-digest", "date", "expect",
        "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "cookie", "proxy-authorization",
        "proxy-connection"
    )

    fun rule(draft: Map<*, *>): PlanRule {
        val name = draft.text("name") ?: throw PlanUnfit("a rule of the plan has no name")
        val methods = draft.texts("methods")
        return PlanRule(
            (draft.texts("hosts") ?: listOf("*")).map { RequestPlace.comparedHost(it) },
            if (methods == null || "*" in methods) null else methods,
            (draft.texts("paths") ?: listOf("/**")).map { PlanPath(it) },
            requirement(draft, name)
        )
    }

    /** What is asked; `null` for nothing. */
    fun requirement(draft: Map<*, *>, rule: String): SigningRequirement? {
        fun unknown(value: Any?) = PlanUnfit("the plan's rule " + rule + " says " + value + ", which is not known")
        val sign = draft.texts("sign") ?: throw unknown("nothing of what is signed")
        if (sign.isEmpty()) return null
        val form = when (draft.text("form") ?: "lines") {
            "lines" -> {
                if (!Form.ALL.containsAll(sign)) throw unknown(sign)
                Form.Lines(sign.toSet(), (draft.texts("headers") ?: emptyList()).map { it.lowered() })
            }
            "content" -> Form.Content
            "challenge" -> Form.ChallengeText
            else -> throw unknown(draft.text("form"))
        }
        val word = draft.text("challenge") ?: Challenge.REQUIRED.word
        val challenge = Challenge.values().firstOrNull { it.word == word } ?: throw unknown(word)
        val counter = draft["counter"]
        val window = when (counter) {
            is Double -> if (counter in 1.0..SigningRequirement.WINDOW_MAX.toDouble()) counter.toInt() else 0
            // Older gateways had no other counter.
            null, "strict" -> 0
            else -> throw unknown(counter)
        }
        val accept = draft.texts("accept") ?: listOf("assertion")
        val fields = fields(draft["fields"] as? Map<*, *>)
        // A plan comes over a network: no name in it may break or reframe a request.
        val signed = (form as? Form.Lines)?.headers ?: emptyList()
        for (field in signed + fields.all) if (!FieldReader.isToken(field)) throw unknown(field)
        for (field in fields.all) if (field.lowered() in FRAMING) throw unknown(field)
        return SigningRequirement(
            form, challenge, draft.text("challenge_pointer"), draft.text("digest") == "streamed", window,
            "assertion" in accept, "session" in accept, asksToken(draft), fields
        )
    }

    /** Whether a token of Google Play is asked for: one of its tokens is for that. */
    private fun asksToken(draft: Map<*, *>): Boolean =
        (draft["tokens"] as? List<*> ?: emptyList<Any?>())
            .any { "integrity" in ((it as? Map<*, *>)?.texts("for") ?: emptyList()) }

    private fun fields(draft: Map<*, *>?): ProofFields {
        val usual = ProofFields()
        if (draft == null) return usual
        return ProofFields(
            draft.text("key_id") ?: usual.keyId, draft.text("assertion") ?: usual.assertion,
            draft.text("challenge") ?: usual.challenge, draft.text("unsupported") ?: usual.unsupported
        )
    }

    /** As a plan would ask for it. */
    fun draft(requirement: SigningRequirement): Map<String, Any?> {
        val form = requirement.form
        val draft = LinkedHashMap<String, Any?>()
        when (form) {
            is Form.Lines -> {
                draft["sign"] = form.parts.toList()
                draft["headers"] = form.headers
            }
            Form.Content -> draft["sign"] = listOf("content")
            Form.ChallengeText -> draft["sign"] = listOf("challenge-text")
        }
        draft["form"] = when (form) {
            is Form.Lines -> "lines"
            Form.Content -> "content"
            Form.ChallengeText -> "challenge"
        }
        draft["challenge"] = requirement.challenge.word
        if (requirement.challengePointer != null) draft["challenge_pointer"] = requirement.challengePointer
        draft["digest"] = if (requirement.needsContentDigest) "streamed" else "held"
        draft["counter"] = if (requirement.isStrict) "strict" else requirement.window
        draft["accept"] = listOf("assertion", "session")
            .filter { if (it == "session") requirement.takesSessions else requirement.takesAssertions }
        if (requirement.asksToken) draft["tokens"] = listOf(mapOf("for" to listOf("integrity")))
        draft["fields"] = requirement.fields.let {
            mapOf(
                "key_id" to it.keyId, "assertion" to it.assertion, "challenge" to it.challenge,
                "unsupported" to it.unsupported
            )
        }
        return draft
    }
}
