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
// It follows no redirects, and reads an answer into memory.
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
import java.security.SecureRandom
import java.security.Signature
import java.security.interfaces.ECPublicKey
import java.security.spec.ECGenParameterSpec
import java.util.ArrayDeque
import java.util.Base64
import java.util.Properties
import java.util.TreeMap
import java.util.TreeSet
import java.util.concurrent.CancellationException
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.ExecutionException
import java.util.concurrent.FutureTask
import java.util.concurrent.Semaphore
import java.util.concurrent.TimeUnit
import java.util.concurrent.TimeoutException
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.locks.Lock
import java.util.concurrent.locks.ReentrantLock
import java.util.concurrent.locks.ReentrantReadWriteLock
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec

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
    /** The longest time that a request waits for a session to be opened. Then it goes with an assertion. */
    val sessionWait: Long = 5_000,
    /** The longest time that a request or an enrolment waits for its token of Google Play. Then it goes without. */
    val tokenWait: Long = 5_000,
    /** How many tokens are asked for at once. A call that never ends keeps its place. */
    val tokensAtOnce: Int = 8,
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

/** What a rule asks of a request. */
data class PortcullisSigning(
    /** Of `method target body challenge`; or `content`, or `challenge-text`, alone. */
    val parts: Set<String> = setOf("method", "target", "body", "challenge"),
    /** The names of the fields that are signed too, in lower case, in the rule's order. */
    val headers: List<String> = emptyList(),
    /** `counter: strict`: one request at a time. */
    val isStrict: Boolean = false,
    /** `accept: [assertion, session]`. */
    val takesSession: Boolean = false,
    /** `integrity`: a token of Google Play stands beside the signature. */
    val asksToken: Boolean = false
) {
    internal val hasChallenge: Boolean
        get() = "challenge" in parts || "content" in parts || "challenge-text" in parts

    internal val hasDigest: Boolean get() = "body" in parts

    /** A session is for rules that sign this much. */
    internal val fitsSession: Boolean get() = takesSession && parts.containsAll(listOf("method", "target", "body"))
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

    /** Whether it may run more than once (RFC 9110 §9.2.2), or the origin tells a second run apart. */
    internal val isRepeatable: Boolean
        get() = method in IDEMPOTENT
            || headers.any { it.key.equals("Idempotency-Key", ignoreCase = true) && it.value.isNotEmpty() }

    private companion object {
        val IDEMPOTENT = setOf("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE")
    }
}

/** An answer of the gateway, or of the origin behind it. */
class PortcullisAnswer(
    val status: Int,
    /** By name, in any case. */
    val headers: Map<String, List<String>>,
    val body: ByteArray,
    /** Why the request carried no proof; `null` where it carried one. */
    val absence: String? = null,
    /** Whether that was a session's signature. */
    val isInSession: Boolean = false,
    /** Why it carried no token although its rule asks for one: `unsupported`, `failed` or `late`. */
    val tokenAbsence: String? = null,
    /**
     * Whether the origin may have run the request although it was refused: the proof came before, in a copy that
     * something on the way has made, and the answer to that one is lost. Such a request is not sent again by itself,
     * unless its method is idempotent or it has an `Idempotency-Key`.
     */
    val mayHaveRun: Boolean = false
) {
    internal fun asMayHaveRun() =
        PortcullisAnswer(status, headers, body, absence, isInSession, tokenAbsence, mayHaveRun = true)

    internal fun fields(name: String): List<String> =
        headers.entries.filter { it.key.equals(name, ignoreCase = true) }.flatMap { it.value }

    internal fun field(name: String): String? = fields(name).firstOrNull()
}

/** What sends a request. The fields are those that were signed: add or change none of them. */
interface PortcullisTransport {
    @Throws(IOException::class)
    fun exchange(method: String, url: URL, headers: Map<String, String>, body: ByteArray): PortcullisAnswer
}

/** What makes keys and signs with them. What else it throws counts as a [GeneralSecurityException]. */
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
    /**
     * Asks Google Play for a token: takes the `requestHash`, and returns the token of a standard request, or throws.
     * It is called on a thread of its own, and only where a rule or an enrolment asks for a token.
     */
    tokens: ((requestHash: String) -> String)? = null,
    /** Whether an enrolment brings a token unasked: for an app entry whose `integrity` only marks. */
    private val enrolsWithToken: Boolean = false,
    /** Whether sessions are opened for routes that take them: over TLS, or to this machine. */
    usesSessions: Boolean = true,
    private val endpoints: String = "/.well-known/app-attest",
    private val limits: PortcullisLimits = PortcullisLimits(),
    keys: PortcullisKeys = AndroidKeys(),
    private val transport: PortcullisTransport = URLTransport(limits),
    private val now: () -> Long = System::currentTimeMillis,
    private val pause: (Long) -> Unit = Thread::sleep,
    /** What happened, in words that have no secrets in them. */
    private val log: (String) -> Unit = {}
) {
    private val random = SecureRandom()
    private val keys = CheckedKeys(keys)
    private val store = Store.of(record)
    private val challenges = Challenges(limits, now)
    private val tokens = Tokens(tokens, limits, log)
    private val sessions = Sessions(limits, now, log)
    /** How many signatures in a row the keystore failed to make. */
    private val unsigned = AtomicInteger()
    // The answer that opens a session has its secret.
    private val opensSessions =
        usesSessions && (gateway.protocol == "https" || THIS_MACHINE.matches(gateway.host))
    // The newest routes, by method and path.
    private val learned = object : LinkedHashMap<String, PortcullisSigning>(16, 0.75f, true) {
        override fun removeEldestEntry(eldest: MutableMap.MutableEntry<String, PortcullisSigning>) =
            size > limits.routes
    }

    /** Enrols the key, if there is none: for the start of the app. Returns whether there is one. */
    fun prepare(): Boolean = enrolled().key != null

    /**
     * Forgets the key, as after a change of [context]. Where a day allows no other key, the last one stays, unless it is
     * bound to a context: without it no request could be proven until the next day. Returns whether it was forgotten.
     */
    @Throws(IOException::class)
    fun reset(): Boolean {
        sessions.reset()
        var isForgotten = true
        store.change {
            it.forgetOld(now())
            isForgotten = it.made.size < limits.keysPerDay || it.context != null
            if (isForgotten) forget(it)
        }
        sessions.reset()
        challenges.clear()
        return isForgotten
    }

    /** Forgets what belongs to a user who signs out: the session and the challenges. The key is the phone's: it stays. */
    fun signOut() {
        sessions.reset()
        challenges.clear()
    }

    /** Sends a request with the proof that its rule asks for. Throws where no answer came. */
    @Throws(IOException::class)
    fun send(request: PortcullisRequest): PortcullisAnswer {
        var isBare = false
        var isAsserted = false
        var hasStartedOver = false
        var tokensShown = 0
        var attempt = 1
        while (true) {
            val signing = signing(request)
            val held = if (isBare) Held(null, "route-unknown") else held(signing, isAsserted)
            val ticket = held.ticket
            val answer = exchange(request, signing, held)
            isBare = false
            learn(request, answer, held)
            val refusal = Refusal.of(answer) ?: return answer
            log("refused " + refusal.reason + ", next " + refusal.next)
            // Something between has sent it twice: to sign again would run it twice.
            if (refusal.reason in SIGNS_OF_A_COPY && answer.absence == null && !request.isRepeatable) {
                return answer.asMayHaveRun()
            }
            if (attempt == limits.attempts) {
                // The next request must not be refused for the same key or session.
                if (refusal.next == "enrol" && !hasStartedOver) held.key?.let { lose(it.alias, refusal.reason) }
                if (refusal.reason in ENDS_OF_SESSIONS) ticket?.let { sessions.forget(it.session) }
                return answer
            }
            attempt += 1
            when {
                // What is signed may be older than the rule: the 403 says it, or that of an older gateway the 401
                // without a proof.
                refusal.reason == "signature-mismatch" -> {
                    if (hasStartedOver || held.key == null) return answer
                    hasStartedOver = true
                    isBare = signing(request) == signing
                }
                refusal.next == "sign-again" -> {
                    if (answer.absence == "request-unfit") return answer
                    if (held.key == null && held.absence != "route-unknown" && enrolled().key == null) return answer
                    if (refusal.reason in SIGNS_OF_RESTART) challenges.keepNewest()
                    // The next number is enough after `session-replayed`; other routes go on after `session-refused`.
                    if (refusal.reason in ENDS_OF_SESSIONS) ticket?.let { sessions.forget(it.session) }
                    isAsserted = ticket != null && refusal.reason != "session-replayed"
                }
                refusal.next == "enrol" && !hasStartedOver && held.key != null -> {
                    hasStartedOver = true
                    lose(held.key.alias, refusal.reason)
                }
                // The rule is newer than what was known of it, or Google's word about the token is not good enough.
                refusal.next == "get-token" -> {
                    if (!tokens.canBeMade || !signing(request).asksToken || answer.tokenAbsence != null) return answer
                    if (signing.asksToken) tokensShown += 1
                    if (tokensShown == TOKENS_SHOWN) return answer
                }
                refusal.next == "retry-later" -> {
                    val seconds = answer.field("retry-after")?.toLongOrNull() ?: return answer
                    if (seconds < 0 || seconds > limits.retryWait / 1000) return answer
                    // The field has whole seconds; the rest is jitter.
                    pause(seconds * 1000 + random.nextInt(1000))
                }
                // An older gateway of the fleet takes no key id beside a session.
                refusal.reason == "assertion-malformed" && ticket != null -> {
                    sessions.forget(ticket.session)
                    isAsserted = true
                }
                else -> return answer
            }
        }
    }

    /** What the route asks, as far as it is known. */
    private fun signing(request: PortcullisRequest): PortcullisSigning =
        synchronized(learned) { learned[request.route] } ?: request.signing

    /** What the request can be proven with: the key, and a place in a session where the route takes one. */
    private fun held(signing: PortcullisSigning, isAsserted: Boolean): Held {
        val held = enrolled()
        if (held.key == null || isAsserted || !opensSessions || !signing.fitsSession) return held
        val ticket = sessions.ticket(held.key.id) { openSession() }
        // To ask for one may have cost the key.
        return if (ticket == null) enrolled() else Held(held.key, null, ticket)
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

    /** Sends a request once, with the proof that can be had. */
    private fun exchange(request: PortcullisRequest, signing: PortcullisSigning, held: Held): PortcullisAnswer {
        val sent = plainFields(request)
        if (!isSignable(request, signing)) return transfer(request, sent, "request-unfit")
        if (held.ticket != null) {
            try {
                proveInSession(request, signing, held.ticket, sent)
                return transfer(request, sent, null, isInSession = true)
            } finally {
                sessions.ended(held.ticket)
            }
        }
        if (held.key == null) {
            if (held.absence == "unsupported") sent["App-Attest-Unsupported"] = "1"
            return transfer(request, sent, held.absence)
        }
        val challenge = if (signing.hasChallenge) challenges.take() ?: askChallenges() else null
        val data = clientData(request, signing, challenge, sent)
        // Before its turn and its counter: no other request waits for Google Play.
        val token = if (signing.asksToken) tokens.made(data) else null
        return inTurn(signing.isStrict) {
            val absence = prove(request, signing, held.key, challenge, data, sent)
            if (absence == null && token?.text != null) sent[TOKEN_FIELD] = token.text
            transfer(request, sent, absence, tokenAbsence = token?.absence)
        }
    }

    private fun transfer(
        request: PortcullisRequest,
        sent: Map<String, String>,
        absence: String?,
        isInSession: Boolean = false,
        tokenAbsence: String? = null
    ): PortcullisAnswer {
        // As it is signed. Resolved against the gateway, `//name/path` would go to another host.
        val url = URL(gateway.protocol, gateway.host, gateway.port, request.target)
        val answer = transport.exchange(request.method, url, sent, request.body)
        return PortcullisAnswer(answer.status, answer.headers, answer.body, absence, isInSession, tokenAbsence)
    }

    private fun plainFields(request: PortcullisRequest): MutableMap<String, String> {
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
        return sent
    }

    /** Adds the fields of an assertion. Returns why there is none, or `null`. */
    private fun prove(
        request: PortcullisRequest,
        signing: PortcullisSigning,
        key: Key,
        challenge: String?,
        data: ByteArray,
        sent: MutableMap<String, String>
    ): String? {
        val signature: ByteArray?
        val counter: Long
        try {
            // On disk before anything is signed with it, so that no number is given twice.
            counter = store.nextCounter(key.id) ?: return "key-lost"
            signature = keys.sign(key.alias, message(counter, data))
        } catch (error: IOException) {
            return "record-unwritable"
        } catch (error: GeneralSecurityException) {
            if (unsigned.incrementAndGet() >= UNSIGNED_MAX) replaceUnfit(key.alias)
            return "key-failed"
        }
        unsigned.set(0)
        if (signature == null) {
            lose(key.alias, "key-lost")
            return "key-lost"
        }
        sent["App-Attest-Key-Id"] = key.id
        sent["App-Attest-Assertion"] = "v1." + counter + "." + base64url(signature)
        if (challenge != null) sent["App-Attest-Challenge"] = challenge
        if (signing.hasDigest && request.body.isNotEmpty()) sent["Content-Digest"] = digestMember(request.body)
        return null
    }

    /** Adds the fields of a session's request: its number stands in the place of the challenge. */
    private fun proveInSession(
        request: PortcullisRequest,
        signing: PortcullisSigning,
        ticket: Sessions.Ticket,
        sent: MutableMap<String, String>
    ) {
        val number = ticket.number.toString()
        val code = Mac.getInstance("HmacSHA256").run {
            init(SecretKeySpec(ticket.session.secret, "HmacSHA256"))
            doFinal(clientData(request, signing.copy(parts = signing.parts + "challenge"), number, sent))
        }
        if (ticket.session.namesKey) sent["App-Attest-Key-Id"] = ticket.session.keyId
        sent["App-Attest-Session"] = ticket.session.id
        sent["App-Attest-Sequence"] = number
        sent["App-Attest-Signature"] = base64(code)
        if (request.body.isNotEmpty()) sent["Content-Digest"] = digestMember(request.body)
    }

    /** Asks for a session, with an assertion; twice where that may help. */
    private fun openSession(): Sessions.Opened {
        var hasStartedOver = false
        for (attempt in 1..2) {
            val key = enrolled().key ?: break
            val request = PortcullisRequest("POST", endpoints + "/sessions")
            val answer = try {
                exchange(request, request.signing, Held(key, null))
            } catch (error: IOException) {
                break
            }
            keepChallenge(answer)
            if (answer.status == 201) {
                val session = Session.of(String(answer.body, Charsets.UTF_8), key.id, now())
                return Sessions.Opened(session, Sessions.HOLD)
            }
            val refusal = Refusal.of(answer)
            log("no session: " + (refusal?.reason ?: "no answer"))
            when {
                refusal?.next == "sign-again" -> challenges.keepNewest()
                refusal?.next == "enrol" -> {
                    // A second key for one session would not be the last.
                    if (hasStartedOver) return Sessions.Opened(null, Sessions.HOLD)
                    hasStartedOver = true
                    lose(key.alias, refusal.reason)
                }
                refusal == null || answer.status >= 500 || refusal.next == "retry-later" ->
                    return Sessions.Opened(null, retryAfter(answer) ?: Sessions.HOLD)
                // Such as a gateway that has no sessions.
                else -> return Sessions.Opened(null, Sessions.HOLD_MAX)
            }
        }
        return Sessions.Opened(null, Sessions.HOLD)
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
        // Signed fields are ASCII, as all else in the lines is.
        return lines.toString().toByteArray(Charsets.US_ASCII)
    }

    /** HTTP stacks differ in how they write what is not ASCII, or don't. */
    private fun isSignable(request: PortcullisRequest, signing: PortcullisSigning): Boolean =
        request.headers.none { (name, value) ->
            signing.headers.any { it.equals(name, ignoreCase = true) } && value.any { it !in ' '..'~' && it != '\t' }
        }

    /** `Host` as HTTP stacks write it: with the port where it is not the scheme's own. */
    private fun authority(): String =
        if (gateway.port == -1 || gateway.port == gateway.defaultPort) gateway.host
        else gateway.host + ":" + gateway.port

    // What answers say.

    private fun keepChallenge(answer: PortcullisAnswer) {
        answer.field("app-attest-challenge")?.let { challenges.add(it, limits.challengeLifetime) }
    }

    private fun learn(request: PortcullisRequest, answer: PortcullisAnswer, held: Held) {
        keepChallenge(answer)
        val refusal = Refusal.of(answer)
        val advice = answer.field("app-attest-next")
        val text = if (refusal != null) {
            answer.fields("www-authenticate").firstOrNull { "AppAttest " in it }?.substringAfter("AppAttest ")
        } else advice
        val parameters = HashMap<String, String>()
        for (match in PARAMETER.findAll(text ?: "")) {
            parameters.getOrPut(match.groupValues[1]) { match.groupValues[2].trim('"') }
        }
        val parts = parameters["sign"]
        if (parts != null) {
            val signing = PortcullisSigning(
                words(parts).toSet(), words(parameters["headers"]), "counter" !in parameters,
                takesSession = "session" in words(parameters["accept"]),
                asksToken = "token" in words(parameters["integrity"])
            )
            synchronized(learned) { learned[request.route] = signing }
        }
        if (refusal != null) return
        // A rule that observes says that the session is not taken. The client would use it on.
        val reason = parameters["error"]
        if (reason != null && reason in ENDS_OF_SESSIONS) held.ticket?.let { sessions.forget(it.session) }
        // It says that the key is not known. Another key's answer is from a cache.
        val key = held.key
        if (advice?.substringBefore(';') == "enrol" && key != null && (parameters["key"] ?: key.id) == key.id) {
            lose(key.alias, "observed")
        }
    }

    private fun words(text: String?): List<String> = (text ?: "").split(' ').filter { it.isNotEmpty() }

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
            if (!store.enrolling.tryLock(limits.enrolmentWait, TimeUnit.MILLISECONDS)) {
                return Held(null, if (store.read().isBroken) "unsupported" else "enrolling")
            }
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
                return Held(null, if (record.isBroken) "unsupported" else "held")
            }
            // Each of these ends with a key, an enrolled key, or a hold.
            val alias = record.alias
            if (alias == null) makeKey() else register(alias)
        }
    }

    /** Nothing before a time: after the gateway's, or after a delay that doubles. */
    private fun hold(retryAfter: Long, reason: String) {
        logHold(store.change { delay(it, retryAfter) }, reason)
    }

    private fun delay(record: Record, retryAfter: Long) {
        val doubled = minOf(limits.enrolmentDelay shl minOf(record.failures, 20), limits.enrolmentDelayMax)
        val own = doubled / 2 + (random.nextDouble() * doubled / 2).toLong()
        record.failures += 1
        record.heldUntil = now() + maxOf(own, minOf(retryAfter, limits.retryAfterMax) + random.nextInt(1000))
    }

    private fun logHold(record: Record, reason: String) =
        log("enrolment held for " + (record.heldUntil - now()) / 1000 + " s: " + reason)

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
        val record = store.change {
            it.alias = alias
            it.challenge = challenge
            it.context = context?.let { bytes -> base64(bytes) }
            it.made.add(now())
        }
        try {
            keys.generate(alias, sha256(record.enrolmentData))
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
        if (point == null) return giveUp(alias, "key-lost")
        val keyId = base64(sha256(point))
        val document = StringBuilder("{\"platform\":\"android\",\"key_id\":\"" + keyId + "\",\"chain\":[")
        document.append(chain.joinToString(",") { "\"" + base64(it) + "\"" })
        document.append("],\"challenge\":\"" + record.challenge + "\"")
        record.context?.let { document.append(",\"context\":\"" + it + "\"") }
        val call = register(document.append("}").toString(), record)
        // Something between app and gateway may answer with a page of its own.
        if (call != null && (call.status == 201 || call.status == 200) && Json.text(call.text, "key_id") != null) {
            store.change {
                if (it.alias == alias) it.enrolled(keyId)
            }
            return log("enrolled")
        }
        val refusal = call?.refusal
        when (refusal?.next) {
            "enrol" -> giveUp(alias, refusal.reason)
            null, "retry-later" -> hold(call?.retryAfter ?: 0, refusal?.reason ?: "no answer")
            "get-token" -> hold(if (tokens.canBeMade) 0 else limits.enrolmentDelayMax, refusal.reason)
            // The app, its build or the phone is not admitted. That may change, and not soon.
            else -> hold(limits.enrolmentDelayMax, refusal.reason)
        }
    }

    /** Sends the document; with a token of Google Play where the gateway asks for one. The challenge stays good. */
    private fun register(document: String, record: Record): Call? {
        var token = if (enrolsWithToken) tokens.made(record.enrolmentData) else null
        var call = call("keys", document, token)
        for (shown in 1..TOKENS_SHOWN) {
            if (call?.refusal?.next != "get-token" || token?.absence != null) return call
            token = tokens.made(record.enrolmentData)
            if (token.absence == null) call = call("keys", document, token)
        }
        return call
    }

    /** [giveUp] for a request, which goes on even when the record can't be written. */
    private fun lose(alias: String, reason: String) {
        try {
            giveUp(alias, reason)
        } catch (error: IOException) {
            log("the record can't be written")
        }
    }

    /**
     * Forgets a key that the gateway or the keystore does not know, if it is still the one. The first time in a day
     * another is made at once, later ones wait longer and longer.
     */
    private fun giveUp(alias: String, reason: String) {
        log("key lost: " + reason)
        var isHeld = false
        val record = store.change {
            // Requests that were under way with the key all say it. The first one counts.
            if (it.alias == alias) {
                it.forgetOld(now())
                it.losses.add(now())
                forget(it)
                isHeld = it.losses.size > 1
                if (isHeld) delay(it, 0)
            }
        }
        if (isHeld) logHold(record, reason)
    }

    /** Some keys fail for good ("Invalid key blob"), as after an update: another one is tried, once in a day. */
    private fun replaceUnfit(alias: String) {
        try {
            if (store.change { it.forgetOld(now()) }.losses.isNotEmpty()) return
        } catch (error: IOException) {
            return
        }
        unsigned.set(0)
        lose(alias, "key-failed")
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

    /**
     * Calls one of the gateway's endpoints. `null` where no answer came. Of an answer that is not the gateway's only
     * `Retry-After` is obeyed: its status counts as 0.
     */
    private fun call(name: String, document: String, token: Tokens.Made? = null): Call? {
        val headers = linkedMapOf("Content-Type" to "application/json", "Accept" to "application/json")
        token?.text?.let { headers[TOKEN_FIELD] = it }
        val answer = try {
            transport.exchange("POST", URL(gateway, endpoints + "/" + name), headers, document.toByteArray())
        } catch (error: IOException) {
            return null
        }
        val refusal = Refusal.of(answer)
        if (answer.status >= 300 && refusal == null) return Call(0, "", null, retryAfter(answer) ?: 0)
        return Call(answer.status, String(answer.body, Charsets.UTF_8), refusal, retryAfter(answer) ?: 0)
    }

    /** In milliseconds. */
    private fun retryAfter(answer: PortcullisAnswer): Long? =
        answer.field("retry-after")?.toLongOrNull()?.let { minOf(it, 1_000_000) * 1000 }

    private class Held(val key: Key?, val absence: String?, val ticket: Sessions.Ticket? = null)

    private companion object {
        const val DAY = 86_400_000L
        const val TOKEN_FIELD = "App-Attest-Integrity-Token"
        /** How many tokens one request, or one try of an enrolment, shows after a refusal. */
        const val TOKENS_SHOWN = 2
        /** After so many signatures in a row that failed another key is tried: three requests with three tries each. */
        const val UNSIGNED_MAX = 9
        val SIGNS_OF_A_COPY = listOf("counter-replayed", "challenge-spent", "session-replayed")
        val SIGNS_OF_RESTART = listOf("challenge-unknown", "session-unknown")
        val ENDS_OF_SESSIONS = listOf("session-unknown", "session-expired", "session-mismatch")
        val THIS_MACHINE = Regex("(?:.*\\.)?localhost|\\[::1]|127(?:\\.[0-9]{1,3}){3}", RegexOption.IGNORE_CASE)
        val PARAMETER = Regex("([a-z]+)=(\"[^\"]*\"|[0-9]+)")
    }
}

// The parts.

private fun sha256(bytes: ByteArray): ByteArray = MessageDigest.getInstance("SHA-256").digest(bytes)

private fun base64(bytes: ByteArray): String = Base64.getEncoder().encodeToString(bytes)

private fun base64url(bytes: ByteArray): String = Base64.getUrlEncoder().withoutPadding().encodeToString(bytes)

/** Begins work on a thread of its own, which does not keep the app alive. */
private fun inBackground(work: Runnable, name: String) = Thread(work, name).apply { isDaemon = true }.start()

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

/** The shapes of members that the gateway's answers have. */
private object Json {
    fun text(document: String, name: String): String? =
        Regex("\"" + name + "\"\\s*:\\s*\"([A-Za-z0-9+/=_-]+)\"").find(document)?.groupValues?.get(1)

    fun isTrue(document: String, name: String): Boolean =
        Regex("\"" + name + "\"\\s*:\\s*true").containsMatchIn(document)

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

    @Synchronized
    fun clear() = kept.clear()

    /** The gateway has started again: it knows those that it has given since. */
    @Synchronized
    fun keepNewest() {
        while (kept.size > 1) kept.removeLast()
    }
}

/** Asks the app for tokens of Google Play: within a time, and a few at once. */
private class Tokens(
    private val provider: ((String) -> String)?,
    private val limits: PortcullisLimits,
    private val log: (String) -> Unit
) {
    /** A token, or why there is none. */
    class Made(val text: String?, val absence: String?)

    private val places = Semaphore(limits.tokensAtOnce)

    val canBeMade: Boolean get() = provider != null

    /** A new token, bound to what the key signs or was made for. */
    fun made(clientData: ByteArray): Made {
        val provider = provider ?: return none("unsupported")
        val end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limits.tokenWait)
        if (!places.tryAcquire(limits.tokenWait, TimeUnit.MILLISECONDS)) return none("late")
        val call = FutureTask {
            try {
                provider(base64url(sha256(clientData)))
            } finally {
                places.release()
            }
        }
        inBackground(call, "portcullis-token")
        try {
            val text = call.get(maxOf(0, end - System.nanoTime()), TimeUnit.NANOSECONDS)
            return if (FORM.matches(text)) Made(text, null) else none("failed")
        } catch (error: TimeoutException) {
            return none("late")
        } catch (error: ExecutionException) {
            return none("failed")
        }
    }

    private fun none(absence: String): Made {
        log("no token of Google Play: " + absence)
        return Made(null, absence)
    }

    private companion object {
        /** What the gateway reads. */
        val FORM = Regex("[A-Za-z0-9._~+/=-]{1,8192}")
    }
}

/** A session that the gateway has opened. Its numbers are counted by [Sessions]. */
private class Session(
    val id: String,
    val secret: ByteArray,
    val keyId: String,
    /** Whether its requests say the key's id, so that a load balancer finds the gateway. */
    val namesKey: Boolean,
    val window: Long,
    val until: Long,
    val renewal: Long
) {
    var next = 1L
    /** Numbers whose answers have not come. */
    val underWay = TreeSet<Long>()

    companion object {
        /** Reads the answer of `…/sessions`. */
        fun of(document: String, keyId: String, now: Long): Session? {
            val id = Json.text(document, "session") ?: return null
            val secret = Json.text(document, "secret")?.let { Base64.getDecoder().decode(it) } ?: return null
            val life = (Json.number(document, "expires_in") ?: return null) * 1000
            if (secret.size != 32 || life <= 0) return null
            return Session(
                id, secret, keyId, Json.isTrue(document, "accepts_key_id"), Json.number(document, "window") ?: 1,
                // Shorter than it lives, so that no request ends on its way.
                until = now + life - minOf(life / 10, 10_000), renewal = now + life / 5 * 4
            )
        }
    }
}

/** Keeps the one session: opened when it is asked for, once for all who ask, and the next one before it ends. */
private class Sessions(
    private val limits: PortcullisLimits,
    private val now: () -> Long,
    private val log: (String) -> Unit
) {
    /** A request's place in a session. */
    class Ticket(val session: Session, val number: Long)

    /** A session; or how long none is asked for. */
    class Opened(val session: Session?, val hold: Long)

    private var session: Session? = null
    private var opening: FutureTask<Unit>? = null
    private var holdUntil = 0L
    /** How often all was forgotten: what was begun before is not used. */
    private var resets = 0

    /** The next place; `null` where no session comes in time, or its window is full. */
    fun ticket(keyId: String, opener: () -> Opened): Ticket? {
        val work = synchronized(this) {
            session = session?.takeIf { it.keyId == keyId && it.until > now() }
            session?.let {
                if (it.renewal <= now()) begin(opener)
                return place(it)
            }
            begin(opener) ?: return null
        }
        try {
            work.get(limits.sessionWait, TimeUnit.MILLISECONDS)
        } catch (error: TimeoutException) {
            return null
        } catch (error: CancellationException) {
            return null
        } catch (error: ExecutionException) {
            return null
        }
        return synchronized(this) { session?.takeIf { it.keyId == keyId }?.let { place(it) } }
    }

    private fun place(session: Session): Ticket? {
        val number = session.next
        if (session.underWay.isNotEmpty() && number - session.underWay.first() >= session.window) return null
        session.next += 1
        session.underWay.add(number)
        return Ticket(session, number)
    }

    private fun begin(open: () -> Opened): FutureTask<Unit>? {
        opening?.let { return it }
        // A hold that is longer than any was made by another clock.
        if (holdUntil > now() && holdUntil - now() <= HOLD_MAX) return null
        val resetsBefore = resets
        val work = FutureTask<Unit> {
            var opened = Opened(null, HOLD)
            try {
                opened = open()
            } finally {
                synchronized(this) { if (resets == resetsBefore) take(opened) }
            }
        }
        opening = work
        inBackground(work, "portcullis-session")
        return work
    }

    private fun take(opened: Opened) {
        opening = null
        if (opened.session == null) {
            holdUntil = now() + minOf(opened.hold, HOLD_MAX)
        } else {
            session = opened.session
            log("session opened")
        }
    }

    /** The answer to a request has come. */
    @Synchronized
    fun ended(ticket: Ticket) {
        ticket.session.underWay.remove(ticket.number)
    }

    /** Forgets a session that was refused, unless another one has taken its place. */
    @Synchronized
    fun forget(refused: Session) {
        if (session === refused) session = null
    }

    @Synchronized
    fun reset() {
        resets += 1
        session = null
        holdUntil = 0
        opening?.cancel(false)
        opening = null
    }

    companion object {
        /** After a failure that may pass, and after a gateway that has no sessions. */
        const val HOLD = 30_000L
        const val HOLD_MAX = 3_600_000L
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

    /** Whether the keystore counts as one that makes no keys. One failure may pass. */
    val isBroken: Boolean get() = deviceFailures > 1

    /** What the key is made for: the attestation challenge is its hash. */
    val enrolmentData: ByteArray
        get() {
            val digest = context?.let { digestMember(Base64.getDecoder().decode(it)) }
            val text = challenge ?: ""
            return (if (digest == null) text else "portcullis-enrolment-v1\n$text\n$digest\n").toByteArray()
        }

    /** A hold that is longer than any was made by another clock. */
    fun isHeld(now: Long, limits: PortcullisLimits): Boolean =
        heldUntil > now && heldUntil - now <= maxOf(limits.retryAfterMax, limits.enrolmentDelayMax) * 2

    /**
     * Forgets what is older than a day. What is in the future was counted before the clock was set back: it counts as
     * of now, so that it neither holds for ever nor makes room for more keys.
     */
    fun forgetOld(now: Long) {
        for (times in listOf(made, losses)) {
            times.replaceAll { minOf(it, now) }
            times.retainAll { it > now - 86_400_000L }
            times.sort()
        }
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
            } catch (error: RuntimeException) {
                // StrongBoxUnavailableException, or a StrongBox that fails.
            }
        }
        generate(alias, attestationChallenge, false)
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
        return Signature.getInstance("SHA256withECDSA").run {
            initSign(key)
            update(message)
            sign()
        }
    }

    override fun delete(alias: String) = store.deleteEntry(alias)
}

/**
 * Keys whose failures are all [GeneralSecurityException]. Keystores of phones throw what they like as well:
 * `IllegalStateException`, `NullPointerException` and `ProviderException` were seen. None of them ends the app.
 */
private class CheckedKeys(private val keys: PortcullisKeys) : PortcullisKeys {
    private inline fun <T> checked(work: () -> T): T =
        try {
            work()
        } catch (error: RuntimeException) {
            throw KeyStoreException(error)
        } catch (error: IOException) {
            throw KeyStoreException(error)
        }

    override fun generate(alias: String, attestationChallenge: ByteArray) =
        checked { keys.generate(alias, attestationChallenge) }

    override fun chain(alias: String) = checked { keys.chain(alias) }

    override fun point(alias: String) = checked { keys.point(alias) }

    override fun sign(alias: String, message: ByteArray) = checked { keys.sign(alias, message) }

    override fun delete(alias: String) = checked { keys.delete(alias) }
}

/** Sends by [HttpURLConnection], and follows no redirect. */
class URLTransport(private val limits: PortcullisLimits) : PortcullisTransport {
    override fun exchange(method: String, url: URL, headers: Map<String, String>, body: ByteArray): PortcullisAnswer {
        // It would become a POST, which was not signed.
        if (method == "GET" && body.isNotEmpty()) throw IOException("HttpURLConnection sends no GET with content")
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
