package portcullis.client.machine

import java.security.MessageDigest
import java.util.Base64

internal fun sha256(bytes: ByteArray): ByteArray = MessageDigest.getInstance("SHA-256").digest(bytes)

internal fun base64(bytes: ByteArray): String = Base64.getEncoder().encodeToString(bytes)

internal fun base64url(bytes: ByteArray): String = Base64.getUrlEncoder().withoutPadding().encodeToString(bytes)

/** The bytes of a text of base64 in its usual alphabet; `null` for another text. */
internal fun bytesOfBase64(text: String): ByteArray? =
    try {
        Base64.getDecoder().decode(text)
    } catch (error: IllegalArgumentException) {
        null
    }

/** As in `Content-Digest` (RFC 9530). */
internal fun digestMember(digest: ByteArray): String = "sha-256=:" + base64(digest) + ":"

/** What a key is made for: the attestation challenge is its hash. */
internal fun enrolmentData(challenge: String, context: ByteArray?): ByteArray {
    if (context == null) return challenge.toByteArray(Charsets.UTF_8)
    val lines = "portcullis-enrolment-v1\n" + challenge + "\n" + digestMember(sha256(context)) + "\n"
    return lines.toByteArray(Charsets.UTF_8)
}

/** The bytes that the key signs: the counter is the app's, and stands in them. */
internal fun keyMessage(packageName: String, counter: Long, clientDataHash: ByteArray): ByteArray =
    ("portcullis-key-v1\n" + packageName + "\n" + counter + "\n" + base64(clientDataHash) + "\n")
        .toByteArray(Charsets.UTF_8)

/** The field of a proof by the key. */
internal fun assertionText(counter: Long, signature: ByteArray): String = "v1." + counter + "." + base64url(signature)
