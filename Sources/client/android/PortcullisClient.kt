// The client of a Portcullis gateway for Android: copy this file into the app.
//
//     val client = PortcullisClient(
//         gateway = URL("https://api.example.com"),
//         packageName = context.packageName,
//         record = File(context.noBackupFilesDir, "portcullis")
//     )
//     val answer = client.send(PortcullisRequest("POST", "/v1/orders", body = order))
//
// It makes a key in Android's keystore whose hardware vouches for it, enrols the key once for an install, signs each
// request as the gateway's rules ask, counts the signatures, and does what the gateway's `next` says. The guide is
// docs/android.md, and the bytes are in docs/wire.md.
//
// It needs Android 8 (API 26) and nothing besides java.* and android.security.keystore. Its calls block: make them
// on a thread that may wait. One process of an app uses a record; in it, any number of threads and clients may.
// It follows no redirects, opens no sessions, and reads an answer into memory.
package portcullis.client

import android.os.Build
import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyProperties
import java.io.ByteArrayOutputStream
import java.io.File
import java.io.FileOutputStream
import java.io.IOException
import java.io.InputStream
import java.net.HttpURLConnection
import java.net.URL
import java.nio.channels.FileChannel
import java.nio.file.StandardOpenOption
import java.security.GeneralSecurityException
import java.security.KeyPairGenerator
import java.security.KeyStore
import java.security.KeyStoreException
import java.security.MessageDigest
import java.security.PrivateKey
import java.security.ProviderException
import java.security.SecureRandom
import java.security.Signature
import java.security.interfaces.ECPublicKey
import java.security.spec.ECGenParameterSpec
import java.util.ArrayDeque
import java.util.Base64
import java.util.Properties
import java.util.TreeMap
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.TimeUnit
import java.util.concurrent.locks.Lock
import java.util.concurrent.locks.ReentrantLock
import java.util.concurrent.locks.ReentrantReadWriteLock

/** How long the client waits, and how much it keeps. Times are in milliseconds. */
class PortcullisLimits(
    /** How often one request is sent, the first time included. */
    val attempts: Int = 3,
    /** The longest `Retry-After` after which a request is sent again by itself. */
    val retryWait: Long = 10_000,
    /** The longest `Retry-After` of an enrolment that is obeyed. A longer one is cut to it. */
    val retryAfterMax: Long = 86_400_000,
    /** The longest time that a request waits for an enrolment by another thread. */
    val enrolmentWait: Long = 10_000,
    /** The longest time that a request waits for its turn on a route with a strict counter. */
    val strictWait: Long = 30_000,
    /** How many keys are made in 24 hours. */
    val keysPerDay: Int = 3,
    /** The first delay after a failed enrolment. It doubles, with jitter, up to the next. */
    val enrolmentDelay: Long = 2_000,
    val enrolmentDelayMax: Long = 3_600_000,
    /** How many challenges are asked for at once, at most 8, and how many are kept. */
    val challengesAsked: Int = 4,
    val challengesKept: Int = 16,
    /** How long a challenge is used whose lifetime the gateway did not tell. */
    val challengeLifetime: Long = 60_000,
    /** The number of routes of which it is remembered what they sign. */
    val routes: Int = 128,
    /** The most bytes of an answer that are read. */
    val answerBytes: Int = 32 * 1024 * 1024,
    /** How long a connection may take, and how long a byte of an answer. */
    val connectWait: Int = 10_000,
    val readWait: Int = 30_000
)

/** What a rule signs of a request, and whether it takes counters in their order alone. */
data class PortcullisSigning(
    /** Of `method target body challenge`; or `content`, or `challenge-text`, alone. */
    val parts: Set<String> = setOf("method", "target", "body", "challenge"),
    /** The names of the fields that are signed too, in lower case, in the rule's order. */
    val headers: List<String> = emptyList(),
    /** `counter: strict`: one request at a time. */
    val isStrict: Boolean = false
) {
    internal val hasChallenge: Boolean
        get() = "challenge" in parts || "content" in parts || "challenge-text" in parts

    internal val hasDigest: Boolean get() = "body" in parts
}

/** A request to the gateway: the target in origin-form, with its query, escaped as it is sent. */
class PortcullisRequest(
    val method: String,
    val target: String,
    val headers: Map<String, String> = emptyMap(),
    val body: ByteArray = ByteArray(0),
    /** What its rule signs, as the gateway's plan says. What an answer says later is newer. */
    val signing: PortcullisSigning = PortcullisSigning()
) {
    internal val route: String get() = method + " " + target.substringBefore('?')
}

/** An answer of the gateway, or of the origin behind it. */
class PortcullisAnswer(
    val status: Int,
    /** By name, in any case. */
    val headers: Map<String, List<String>>,
    val body: ByteArray,
    /** Why the request carried no proof; `null` where it carried one. */
    val absence: String? = null
) {
    internal fun field(name: String): String? = headers[name]?.firstOrNull()
}

/** What sends a request. The fields are those that were signed: add or change none of them. */
interface PortcullisTransport {
    @Throws(IOException::class)
    fun exchange(method: String, url: URL, headers: Map<String, String>, body: ByteArray): PortcullisAnswer
}

/** What makes keys and signs with them. */
interface PortcullisKeys {
    /** Makes a key on P-256 that signs SHA-256, attested over a challenge. */
    @Throws(GeneralSecurityException::class)
    fun generate(alias: String, attestationChallenge: ByteArray)

    /** The certificates of a key, DER, the leaf first; empty where there is no key. */
    @Throws(GeneralSecurityException::class)
    fun chain(alias: String): List<ByteArray>

    /** The key's point, X9.62, 65 bytes; `null` where there is no key. */
    @Throws(GeneralSecurityException::class)
    fun point(alias: String): ByteArray?

    /** SHA256withECDSA, DER; `null` where there is no key. */
    @Throws(GeneralSecurityException::class)
    fun sign(alias: String, message: ByteArray): ByteArray?

    @Throws(GeneralSecurityException::class)
    fun delete(alias: String)
}

/** A client of one gateway with one key for the install. */
class PortcullisClient(
    private val gateway: URL,
    private val packageName: String,
    /** A file of the client's own, in a folder that is not backed up. */
    private val record: File,
    /** What the app stores with its key, 1 to 256 bytes: attested with the next key that is made. */
    private val context: ByteArray? = null,
    private val endpoints: String = "/.well-known/app-attest",
    private val limits: PortcullisLimits = PortcullisLimits(),
    private val keys: PortcullisKeys = AndroidKeys(),
    private val transport: PortcullisTransport = URLTransport(limits),
    private val now: () -> Long = System::currentTimeMillis,
    private val pause: (Long) -> Unit = Thread::sleep,
    /** What happened, in words that have no secrets in them. */
    private val log: (String) -> Unit = {}
) {
    private val random = SecureRandom()
    private val store = Store.of(record)
    private val challenges = Challenges(limits, now)
    // The newest routes, by method and path.
    private val learned = object : LinkedHashMap<String, PortcullisSigning>(16, 0.75f, true) {
        override fun removeEldestEntry(eldest: MutableMap.MutableEntry<String, PortcullisSigning>) =
            size > limits.routes
    }

    /** Enrols the key, if there is none: for the start of the app. Returns whether there is one. */
    fun prepare(): Boolean = enrolled().key != null

    /** Forgets the key, as after a change of [context]. The day's limit holds all the same. */
    fun reset() {
        store.change { forget(it) }
    }

    /** Sends a request with the proof that its rule asks for. Throws where no answer came. */
    @Throws(IOException::class)
    fun send(request: PortcullisRequest): PortcullisAnswer {
        var isBare = false
        var hasStartedOver = false
        var attempt = 1
        while (true) {
            val signing = synchronized(learned) { learned[request.route] } ?: request.signing
            val held = if (isBare) Held(null, "route-unknown") else enrolled()
            val answer = inTurn(signing.isStrict && held.key != null) { exchange(request, signing, held) }
            isBare = false
            learn(request, answer, held.key)
            val refusal = Refusal.of(answer) ?: return answer
            log("refused " + refusal.reason + ", next " + refusal.next)
            if (attempt == limits.attempts) return answer
            attempt += 1
            when {
                // What is signed may be older than the rule: the 401 without a proof says it.
                refusal.reason == "signature-mismatch" -> {
                    if (hasStartedOver || held.key == null) return answer
                    hasStartedOver = true
                    isBare = true
                }
                refusal.next == "sign-again" -> {
                    if (held.key == null && held.absence != "route-unknown" && enrolled().key == null) return answer
                    if (refusal.reason == "challenge-unknown") challenges.keepNewest()
                }
                refusal.next == "enrol" && !hasStartedOver && held.key != null -> {
                    hasStartedOver = true
                    lose(held.key.alias, refusal.reason)
                }
                refusal.next == "retry-later" -> {
                    val seconds = answer.field("retry-after")?.toLongOrNull() ?: return answer
                    if (seconds < 0 || seconds > limits.retryWait / 1000) return answer
                    // The field has whole seconds; the rest is jitter.
                    pause(seconds * 1000 + random.nextInt(1000))
                }
                else -> return answer
            }
        }
    }

    /** A request with `counter: strict` goes alone; all others of the key wait for its answer. */
    private fun inTurn(isStrict: Boolean, work: () -> PortcullisAnswer): PortcullisAnswer {
        val lock: Lock = if (isStrict) store.turn.writeLock() else store.turn.readLock()
        val isHeld = lock.tryLock(limits.strictWait, TimeUnit.MILLISECONDS)
        try {
            return work()
        } finally {
            if (isHeld) lock.unlock()
        }
    }

    private fun exchange(request: PortcullisRequest, signing: PortcullisSigning, held: Held): PortcullisAnswer {
        val sent = LinkedHashMap<String, String>()
        // HTTP stacks write these after the request was signed, unless they are there.
        sent["User-Agent"] = "portcullis-android"
        sent["Accept"] = "*/*"
        sent["Accept-Encoding"] = "identity"
        if (request.body.isNotEmpty()) sent["Content-Type"] = "application/octet-stream"
        for ((name, value) in request.headers) {
            sent.keys.filter { it.equals(name, ignoreCase = true) }.forEach { sent.remove(it) }
            sent[name] = value
        }
        var absence = held.absence
        if (held.key != null) {
            absence = prove(request, signing, held.key, sent)
        } else if (absence == "unsupported") {
            sent["App-Attest-Unsupported"] = "1"
        }
        val answer = transport.exchange(request.method, URL(gateway, request.target), sent, request.body)
        return PortcullisAnswer(answer.status, answer.headers, answer.body, absence)
    }

    /** Adds the fields of a proof. Returns why there is none, or `null`. */
    private fun prove(
        request: PortcullisRequest,
        signing: PortcullisSigning,
        key: Key,
        sent: MutableMap<String, String>
    ): String? {
        val challenge = if (signing.hasChallenge) challenges.take() ?: askChallenges() else null
        val data = clientData(request, signing, challenge, sent)
        val signature: ByteArray?
        val counter: Long
        try {
            // On disk before anything is signed with it, so that no number is given twice.
            counter = store.nextCounter(key.id) ?: return "key-lost"
            signature = keys.sign(key.alias, message(counter, data))
        } catch (error: IOException) {
            return "record-unwritable"
        } catch (error: GeneralSecurityException) {
            return "key-failed"
        }
        if (signature == null) {
            lose(key.alias, "key-lost")
            return "key-lost"
        }
        sent["App-Attest-Key-Id"] = key.id
        sent["App-Attest-Assertion"] =
            "v1." + counter + "." + Base64.getUrlEncoder().withoutPadding().encodeToString(signature)
        if (challenge != null) sent["App-Attest-Challenge"] = challenge
        if (signing.hasDigest && request.body.isNotEmpty()) sent["Content-Digest"] = digestMember(request.body)
        return null
    }

    /** The bytes that the key signs. */
    private fun message(counter: Long, clientData: ByteArray): ByteArray =
        ("portcullis-key-v1\n" + packageName + "\n" + counter + "\n" + base64(sha256(clientData)) + "\n")
            .toByteArray()

    private fun clientData(
        request: PortcullisRequest,
        signing: PortcullisSigning,
        challenge: String?,
        sent: Map<String, String>
    ): ByteArray {
        if ("content" in signing.parts) return request.body
        if ("challenge-text" in signing.parts) return (challenge ?: "").toByteArray()
        val lines = StringBuilder("portcullis-request-v1\n")
        lines.append(if ("method" in signing.parts) request.method else "-").append('\n')
        lines.append(if ("target" in signing.parts) request.target else "-").append('\n')
        lines.append(if ("body" in signing.parts) digestMember(request.body) else "-").append('\n')
        lines.append(if ("challenge" in signing.parts) challenge ?: "-" else "-").append('\n')
        for (name in signing.headers) {
            val value = if (name == "host") authority() else sent.entries
                .firstOrNull { it.key.equals(name, ignoreCase = true) }?.value
            lines.append(if (value == null) name else name + ": " + value.trim(' ', '\t')).append('\n')
        }
        // The lines are Latin-1 as fields are; all else in them is ASCII.
        return lines.toString().toByteArray(Charsets.ISO_8859_1)
    }

    private fun authority(): String = if (gateway.port == -1) gateway.host else gateway.host + ":" + gateway.port

    // What answers say.

    private fun learn(request: PortcullisRequest, answer: PortcullisAnswer, key: Key?) {
        answer.field("app-attest-challenge")?.let { challenges.add(it, limits.challengeLifetime) }
        val refusal = Refusal.of(answer)
        val advice = answer.field("app-attest-next")
        val text = if (refusal != null) {
            answer.headers["www-authenticate"]?.firstOrNull { "AppAttest " in it }?.substringAfter("AppAttest ")
        } else advice
        val parameters = HashMap<String, String>()
        for (match in PARAMETER.findAll(text ?: "")) {
            parameters.getOrPut(match.groupValues[1]) { match.groupValues[2].trim('"') }
        }
        val parts = parameters["sign"]
        if (parts != null) {
            val signing = PortcullisSigning(
                words(parts).toSet(), words(parameters["headers"] ?: ""), isStrict = "counter" !in parameters
            )
            synchronized(learned) { learned[request.route] = signing }
        }
        // A rule that observes says that the key is not known. Another key's answer is from a cache.
        if (refusal == null && advice?.substringBefore(';') == "enrol" && key != null &&
            (parameters["key"] ?: key.id) == key.id
        ) lose(key.alias, "observed")
    }

    private fun words(text: String): List<String> = text.split(' ').filter { it.isNotEmpty() }

    private fun askChallenges(): String? {
        val call = call("challenges", "{\"purpose\":\"assertion\",\"count\":" + limits.challengesAsked + "}")
        if (call == null || call.status != 200) return null
        val lifetime = Json.number(call.text, "expires_in") ?: return null
        Json.texts(call.text, "challenges").forEach { challenges.add(it, lifetime * 1000) }
        return challenges.take()
    }

    // Enrolment: the record says how far it came, and is written before each step.

    /** The enrolled key, or why there is none. */
    private fun enrolled(): Held {
        try {
            store.read().key?.let { return Held(it, null) }
            if (!store.enrolling.tryLock(limits.enrolmentWait, TimeUnit.MILLISECONDS)) return Held(null, "enrolling")
            try {
                return enrol()
            } finally {
                store.enrolling.unlock()
            }
        } catch (error: IOException) {
            log("the record can't be written")
            return Held(null, "record-unwritable")
        }
    }

    private fun enrol(): Held {
        while (true) {
            val record = store.read()
            record.key?.let { return Held(it, null) }
            if (record.isHeld(now(), limits)) {
                return Held(null, if (record.deviceFailures > 1) "unsupported" else "held")
            }
            // Each of these ends with a key, an enrolled key, or a hold.
            val alias = record.alias
            if (alias == null) makeKey() else register(alias)
        }
    }

    /** Nothing before a time: after the gateway's, or after a delay that doubles. */
    private fun hold(retryAfter: Long, reason: String) {
        val record = store.change {
            val doubled = minOf(limits.enrolmentDelay shl minOf(it.failures, 20), limits.enrolmentDelayMax)
            val own = doubled / 2 + (random.nextDouble() * doubled / 2).toLong()
            it.failures += 1
            it.heldUntil = now() + maxOf(own, minOf(retryAfter, limits.retryAfterMax) + random.nextInt(1000))
        }
        log("enrolment held for " + (record.heldUntil - now()) / 1000 + " s: " + reason)
    }

    /** Asks for a challenge and makes a key for it. */
    private fun makeKey() {
        val day = store.change { it.forgetOld(now()) }
        if (day.made.size >= limits.keysPerDay) return hold(day.made[0] + DAY - now(), "keys of a day")
        val call = call("challenges", "{\"purpose\":\"enrolment\"}")
        val challenge = if (call?.status == 200) Json.texts(call.text, "challenges").firstOrNull() else null
        if (call == null || challenge == null) return hold(call?.retryAfter ?: 0, call?.refusal?.reason ?: "no answer")
        val bytes = ByteArray(8)
        random.nextBytes(bytes)
        val alias = "portcullis." + bytes.joinToString("") { "%02x".format(it) }
        // Counted before it is made: a process that dies in between may have made it.
        store.change {
            it.alias = alias
            it.challenge = challenge
            it.context = context?.let { bytes -> base64(bytes) }
            it.made.add(now())
        }
        try {
            val lines = if (context == null) challenge else
                "portcullis-enrolment-v1\n" + challenge + "\n" + digestMember(context) + "\n"
            keys.generate(alias, sha256(lines.toByteArray()))
        } catch (error: GeneralSecurityException) {
            store.change {
                it.alias = null
                it.made.removeAt(it.made.size - 1)
                it.deviceFailures += 1
            }
            hold(0, "the keystore fails")
        }
    }

    /** Sends the key to the gateway, which may have it already: an earlier answer may be lost. */
    private fun register(alias: String) {
        val record = store.read()
        val point: ByteArray?
        val chain: List<ByteArray>
        try {
            point = keys.point(alias)
            chain = keys.chain(alias)
        } catch (error: GeneralSecurityException) {
            return hold(0, "the keystore fails")
        }
        // The process died before the key was made, or the keystore has lost it.
        if (point == null) return lose(alias, "key-lost")
        val keyId = base64(sha256(point))
        val document = StringBuilder("{\"platform\":\"android\",\"key_id\":\"" + keyId + "\",\"chain\":[")
        document.append(chain.joinToString(",") { "\"" + base64(it) + "\"" })
        document.append("],\"challenge\":\"" + record.challenge + "\"")
        record.context?.let { document.append(",\"context\":\"" + it + "\"") }
        val call = call("keys", document.append("}").toString())
        if (call != null && (call.status == 201 || call.status == 200)) {
            store.change {
                if (it.alias == alias) it.enrolled(keyId)
            }
            return log("enrolled")
        }
        val refusal = call?.refusal
        when (refusal?.next) {
            "enrol" -> lose(alias, refusal.reason)
            null, "retry-later" -> hold(call?.retryAfter ?: 0, refusal?.reason ?: "no answer")
            // The app, its build or the phone is not admitted. That may change, and not soon.
            else -> hold(limits.enrolmentDelayMax, refusal.reason)
        }
    }

    /**
     * Forgets a key that the gateway or the keystore does not know, if it is still the one. The first time in a day
     * another is made at once, later ones wait longer and longer.
     */
    private fun lose(alias: String, reason: String) {
        log("key lost: " + reason)
        try {
            val record = store.change {
                if (it.alias == alias) {
                    it.forgetOld(now())
                    it.losses.add(now())
                    forget(it)
                }
            }
            if (record.losses.size > 1) hold(0, reason)
        } catch (error: IOException) {
            log("the record can't be written")
        }
    }

    private fun forget(record: Record) {
        try {
            record.alias?.let { keys.delete(it) }
        } catch (error: GeneralSecurityException) {
            log("a key can't be deleted")
        }
        record.alias = null
        record.keyId = null
    }

    private class Call(val status: Int, val text: String, val refusal: Refusal?, val retryAfter: Long)

    /** Calls one of the gateway's endpoints. `null` where no answer came, or not from the gateway. */
    private fun call(name: String, document: String): Call? {
        val headers = linkedMapOf("Content-Type" to "application/json", "Accept" to "application/json")
        val answer = try {
            transport.exchange("POST", URL(gateway, endpoints + "/" + name), headers, document.toByteArray())
        } catch (error: IOException) {
            return null
        }
        val refusal = Refusal.of(answer)
        if (answer.status >= 300 && refusal == null) return null
        val seconds = answer.field("retry-after")?.toLongOrNull() ?: 0
        return Call(answer.status, String(answer.body, Charsets.UTF_8), refusal, minOf(seconds, 1_000_000) * 1000)
    }

    private class Held(val key: Key?, val absence: String?)

    private companion object {
        const val DAY = 86_400_000L
        val PARAMETER = Regex("([a-z]+)=(\"[^\"]*\"|[0-9]+)")
    }
}

// The parts.

private fun sha256(bytes: ByteArray): ByteArray = MessageDigest.getInstance("SHA-256").digest(bytes)

private fun base64(bytes: ByteArray): String = Base64.getEncoder().encodeToString(bytes)

/** As in `Content-Digest` (RFC 9530). */
private fun digestMember(bytes: ByteArray): String = "sha-256=:" + base64(sha256(bytes)) + ":"

/** What the gateway itself refused. An answer without the field is the origin's. */
private class Refusal(val reason: String, val next: String) {
    companion object {
        private val FORM = Regex("([a-z0-9-]{1,64})(?:;.*)?")
        private val NEXT = Regex(";\\s*next=([a-z-]{1,64})")

        fun of(answer: PortcullisAnswer): Refusal? {
            val field = answer.field("app-attest-error") ?: return null
            val reason = FORM.matchEntire(field.trim())?.groupValues?.get(1) ?: return null
            return Refusal(reason, NEXT.find(field)?.groupValues?.get(1) ?: "none")
        }
    }
}

/** The two shapes of members that the gateway's answers have. */
private object Json {
    fun texts(document: String, name: String): List<String> {
        val list = Regex("\"" + name + "\"\\s*:\\s*\\[([^\\]]*)]").find(document) ?: return emptyList()
        return Regex("\"([A-Za-z0-9_-]+)\"").findAll(list.groupValues[1]).map { it.groupValues[1] }.toList()
    }

    fun number(document: String, name: String): Long? =
        Regex("\"" + name + "\"\\s*:\\s*([0-9]{1,9})").find(document)?.groupValues?.get(1)?.toLong()
}

/** Challenges that were not used yet, the newest first. */
private class Challenges(private val limits: PortcullisLimits, private val now: () -> Long) {
    private class Kept(val text: String, val until: Long)

    private val kept = ArrayDeque<Kept>()

    @Synchronized
    fun add(text: String, lifetime: Long) {
        if (kept.size == limits.challengesKept) kept.removeLast()
        kept.addFirst(Kept(text, now() + lifetime))
    }

    @Synchronized
    fun take(): String? {
        while (true) {
            val first = kept.pollFirst() ?: return null
            if (first.until > now()) return first.text
        }
    }

    /** The gateway has started again: it knows those that it has given since. */
    @Synchronized
    fun keepNewest() {
        while (kept.size > 1) kept.removeLast()
    }
}

private class Key(val alias: String, val id: String)

/** How far the enrolment came, and the counter. */
private class Record(lines: Properties) {
    var alias: String? = lines.getProperty("alias")
    /** The id of an enrolled key. */
    var keyId: String? = lines.getProperty("key_id")
    /** The last number that was given. */
    var counter: Long = number(lines, "counter")
    /** What the key was made with, until it is enrolled. */
    var challenge: String? = lines.getProperty("challenge")
    var context: String? = lines.getProperty("context")
    /** When keys were made and lost, in the last 24 hours. */
    val made: MutableList<Long> = times(lines, "made")
    val losses: MutableList<Long> = times(lines, "losses")
    var failures: Int = number(lines, "failures").toInt()
    var deviceFailures: Int = number(lines, "device_failures").toInt()
    var heldUntil: Long = number(lines, "held_until")

    val key: Key?
        get() {
            val alias = alias
            val id = keyId
            return if (alias == null || id == null) null else Key(alias, id)
        }

    /** A hold that is longer than any was made by another clock. */
    fun isHeld(now: Long, limits: PortcullisLimits): Boolean =
        heldUntil > now && heldUntil - now <= maxOf(limits.retryAfterMax, limits.enrolmentDelayMax) * 2

    fun forgetOld(now: Long) {
        made.retainAll { it > now - 86_400_000L && it <= now }
        losses.retainAll { it > now - 86_400_000L && it <= now }
    }

    fun enrolled(id: String) {
        keyId = id
        counter = 0
        failures = 0
        deviceFailures = 0
        heldUntil = 0
    }

    fun lines(): Properties {
        val lines = Properties()
        val texts = listOf(
            "alias" to alias, "key_id" to keyId, "challenge" to challenge, "context" to context,
            "counter" to counter.toString(), "made" to made.joinToString(" "), "losses" to losses.joinToString(" "),
            "failures" to failures.toString(), "device_failures" to deviceFailures.toString(),
            "held_until" to heldUntil.toString()
        )
        for ((name, text) in texts) if (text != null) lines.setProperty(name, text)
        return lines
    }

    private companion object {
        fun number(lines: Properties, name: String): Long = lines.getProperty(name)?.toLongOrNull() ?: 0

        fun times(lines: Properties, name: String): MutableList<Long> =
            (lines.getProperty(name) ?: "").split(' ').mapNotNull { it.toLongOrNull() }.toMutableList()
    }
}

/** The file of a record. All clients of a process that name one file share it. */
private class Store private constructor(private val file: File) {
    val enrolling = ReentrantLock()
    /** Strict requests hold the writing side. */
    val turn = ReentrantReadWriteLock(true)

    @Synchronized
    fun read(): Record {
        val lines = Properties()
        if (file.exists()) file.inputStream().use { lines.load(it) }
        return Record(lines)
    }

    /** Changes the record; on disk when it returns. */
    @Synchronized
    fun change(body: (Record) -> Unit): Record {
        val record = read()
        body(record)
        val other = File(file.path + ".new")
        FileOutputStream(other).use {
            record.lines().store(it, null)
            it.fd.sync()
        }
        if (!other.renameTo(file)) throw IOException("the record can't be replaced")
        val folder = file.absoluteFile.parentFile.toPath()
        FileChannel.open(folder, StandardOpenOption.READ).use { it.force(true) }
        return record
    }

    /** The next number of a key; `null` where it is no longer the key. */
    fun nextCounter(keyId: String): Long? {
        val record = change { if (it.keyId == keyId) it.counter += 1 }
        // The gateway reads 32 bits.
        return if (record.keyId == keyId && record.counter <= 0xFFFF_FFFFL) record.counter else null
    }

    companion object {
        private val all = ConcurrentHashMap<String, Store>()

        fun of(file: File): Store = all.getOrPut(file.canonicalPath) { Store(file) }
    }
}

/** Keys of Android's keystore: in a StrongBox where the phone has one, else in the TEE. */
class AndroidKeys(private val provider: String = "AndroidKeyStore") : PortcullisKeys {
    private val store: KeyStore by lazy { KeyStore.getInstance(provider).apply { load(null) } }

    override fun generate(alias: String, attestationChallenge: ByteArray) {
        if (Build.VERSION.SDK_INT >= 28) {
            try {
                return generate(alias, attestationChallenge, true)
            } catch (error: ProviderException) {
                // StrongBoxUnavailableException, or a StrongBox that fails.
            }
        }
        try {
            generate(alias, attestationChallenge, false)
        } catch (error: ProviderException) {
            throw KeyStoreException(error)
        }
    }

    private fun generate(alias: String, attestationChallenge: ByteArray, isStrongBox: Boolean) {
        val spec = KeyGenParameterSpec.Builder(alias, KeyProperties.PURPOSE_SIGN)
            .setAlgorithmParameterSpec(ECGenParameterSpec("secp256r1"))
            .setDigests(KeyProperties.DIGEST_SHA256)
            .setAttestationChallenge(attestationChallenge)
        if (isStrongBox) spec.setIsStrongBoxBacked(true)
        val generator = KeyPairGenerator.getInstance(KeyProperties.KEY_ALGORITHM_EC, provider)
        generator.initialize(spec.build())
        generator.generateKeyPair()
    }

    override fun chain(alias: String): List<ByteArray> =
        store.getCertificateChain(alias)?.map { it.encoded } ?: emptyList()

    override fun point(alias: String): ByteArray? {
        val point = (store.getCertificate(alias)?.publicKey as? ECPublicKey)?.w ?: return null
        val numbers = listOf(point.affineX, point.affineY).map { number ->
            val bytes = number.toByteArray().takeLast(32)
            List(32 - bytes.size) { 0.toByte() } + bytes
        }
        return byteArrayOf(4) + numbers.flatten().toByteArray()
    }

    override fun sign(alias: String, message: ByteArray): ByteArray? {
        val key = store.getKey(alias, null) as? PrivateKey ?: return null
        try {
            return Signature.getInstance("SHA256withECDSA").run {
                initSign(key)
                update(message)
                sign()
            }
        } catch (error: ProviderException) {
            throw KeyStoreException(error)
        }
    }

    override fun delete(alias: String) = store.deleteEntry(alias)
}

/** Sends by [HttpURLConnection], and follows no redirect. */
class URLTransport(private val limits: PortcullisLimits) : PortcullisTransport {
    override fun exchange(method: String, url: URL, headers: Map<String, String>, body: ByteArray): PortcullisAnswer {
        val connection = url.openConnection() as HttpURLConnection
        connection.instanceFollowRedirects = false
        connection.useCaches = false
        connection.connectTimeout = limits.connectWait
        connection.readTimeout = limits.readWait
        connection.requestMethod = method
        for ((name, value) in headers) connection.setRequestProperty(name, value)
        if (body.isNotEmpty()) {
            connection.doOutput = true
            connection.outputStream.use { it.write(body) }
        }
        val status = connection.responseCode
        val content = if (status >= 400) connection.errorStream else connection.inputStream
        val fields = TreeMap<String, List<String>>(String.CASE_INSENSITIVE_ORDER)
        for ((name, values) in connection.headerFields) if (name != null) fields[name] = values
        return PortcullisAnswer(status, fields, content?.use { read(it) } ?: ByteArray(0))
    }

    private fun read(content: InputStream): ByteArray {
        val whole = ByteArrayOutputStream()
        val piece = ByteArray(16 * 1024)
        while (true) {
            val count = content.read(piece)
            if (count < 0) return whole.toByteArray()
            whole.write(piece, 0, count)
            if (whole.size() > limits.answerBytes) throw IOException("the answer is too long")
        }
    }
}
