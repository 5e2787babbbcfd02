package portcullis.client.machine

import portcullis.client.PortcullisField
import portcullis.client.SigningRequirement
import portcullis.client.SigningRequirement.Form
import portcullis.client.lowered

/** What of a request is signed. */
internal class SignedBytes(
    private val method: String,
    private val place: RequestPlace,
    /** All fields that are sent, but for the proof's. */
    private val fields: List<PortcullisField>,
    /** SHA-256 of the content. */
    private val digest: ByteArray
) {
    /** SHA-256 of the client data; `null` where the request lacks what the form signs, or has what can't be signed. */
    class ClientData(
        /** `null` where they are the content, which is not held. */
        val bytes: ByteArray?,
        val hash: ByteArray
    )

    /** What the key signs. */
    fun clientData(form: Form, challenge: String?): ClientData? = when (form) {
        is Form.Lines -> lines(form, if ("challenge" in form.parts) challenge else null)?.let { whole(it) }
        Form.Content -> ClientData(null, digest)
        Form.ChallengeText -> challenge?.let { whole(it) }
    }

    /** What a session signs: its number stands in the place of the challenge, whatever the rule signs. */
    fun sessionData(form: Form, number: Long): ByteArray? =
        (form as? Form.Lines)?.let { lines(it, number.toString()) }?.toByteArray(Charsets.US_ASCII)

    private fun whole(text: String): ClientData {
        val bytes = text.toByteArray(Charsets.US_ASCII)
        return ClientData(bytes, sha256(bytes))
    }

    private fun lines(form: Form.Lines, challenge: String?): String? {
        // A lone "-" reads as a part that is not signed.
        if (method == "-") return null
        val lines = StringBuilder("portcullis-request-v1\n")
        lines.append(if ("method" in form.parts) method else "-").append('\n')
        lines.append(if ("target" in form.parts) place.target else "-").append('\n')
        lines.append(if ("body" in form.parts) digestMember(digest) else "-").append('\n')
        lines.append(challenge ?: "-").append('\n')
        for (name in form.headers) {
            val values = fields.filter { it.name.equals(name, ignoreCase = true) }.map { it.value.trim(' ', '\t') }
            // The gateway takes no field in several lines, and HTTP stacks differ in the bytes that are not ASCII.
            if (values.size > 1 || values.any { !isSignable(it) }) return null
            val value = values.firstOrNull() ?: if (name == "host") place.authority else null
            lines.append(if (value == null) name else name + ": " + value).append('\n')
        }
        return lines.toString()
    }

    companion object {
        /** Whether a signed value may be so: printable ASCII, spaces and tabs. */
        fun isSignable(value: String): Boolean = value.all { it in ' '..'~' || it == '\t' }
    }
}

/** The fields that the client writes, and those that HTTP stacks add. */
internal object OwnFields {
    const val SESSION = "App-Attest-Session"
    const val SEQUENCE = "App-Attest-Sequence"
    const val SIGNATURE = "App-Attest-Signature"
    const val TOKEN = "App-Attest-Integrity-Token"
    const val DIGEST = "Content-Digest"
    private val PROOF = listOf(SESSION, SEQUENCE, SIGNATURE, TOKEN)
    private val CREDENTIALS = setOf("authorization", "cookie", "proxy-authorization")
    private val OF_CONTENT =
        setOf("content-type", "content-length", "content-encoding", "content-language", "content-digest")

    /** Without every proof: each stands for one request to one target. */
    fun withoutProof(fields: List<PortcullisField>, requirement: SigningRequirement): List<PortcullisField> {
        val names = (requirement.fields.all + SigningRequirement().fields.all + PROOF).map { it.lowered() }
        return fields.filter { it.name.lowered() !in names }
    }

    fun withoutCredentials(fields: List<PortcullisField>) = fields.filter { it.name.lowered() !in CREDENTIALS }

    fun withoutContent(fields: List<PortcullisField>) = fields.filter { it.name.lowered() !in OF_CONTENT }

    /**
     * With the signed fields that HTTP stacks write later, as they would be written: one that is added after the
     * signature would make that worthless. And with the content's digest, where the rule signs it.
     */
    fun settled(
        fields: List<PortcullisField>, requirement: SigningRequirement, hasContent: Boolean, digest: ByteArray
    ): List<PortcullisField> {
        val form = requirement.form as? Form.Lines ?: return fields
        val settled = ArrayList(fields)
        for (name in form.headers) {
            if (settled.any { it.name.equals(name, ignoreCase = true) }) continue
            when (name) {
                "content-type" ->
                    if (hasContent) settled.add(PortcullisField("Content-Type", "application/octet-stream"))
                "accept" -> settled.add(PortcullisField("Accept", "*/*"))
                "accept-encoding" -> settled.add(PortcullisField("Accept-Encoding", "identity"))
                "user-agent" -> settled.add(PortcullisField("User-Agent", "PortcullisClient"))
            }
        }
        if ("body" !in form.parts || !hasContent && !requirement.needsContentDigest) return settled
        val others = settled.filter { it.name.equals(DIGEST, ignoreCase = true) }
            .flatMap { it.value.split(',') }.map { it.trim() }
            .filter { it.isNotEmpty() && !it.startsWith("sha-256=") }
        settled.removeAll { it.name.equals(DIGEST, ignoreCase = true) }
        settled.add(PortcullisField(DIGEST, (others + digestMember(digest)).joinToString(", ")))
        return settled
    }
}
