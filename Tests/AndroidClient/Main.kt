// An app with PortcullisClient on a phone in software, as a test tells it: a command a line, an answer a line.
package portcullis.test

import android.security.KeyStoreException
import android.security.keystore.Phone
import android.security.keystore.SoftwareKeystoreProvider
import java.io.File
import java.io.IOException
import java.net.URL
import java.security.ProviderException
import java.security.Security
import java.util.Collections
import java.util.concurrent.Callable
import java.util.concurrent.Executors
import java.util.concurrent.atomic.AtomicInteger
import portcullis.client.Absence
import portcullis.client.Outcome
import portcullis.client.PortcullisAnswer
import portcullis.client.PortcullisClient
import portcullis.client.PortcullisClock
import portcullis.client.PortcullisConfiguration
import portcullis.client.PortcullisContent
import portcullis.client.PortcullisField
import portcullis.client.PortcullisLimits
import portcullis.client.PortcullisRequest
import portcullis.client.PortcullisTokens
import portcullis.client.PortcullisTransport
import portcullis.client.Proof
import portcullis.client.SigningRequirement
import portcullis.client.TransportAnswer
import portcullis.client.android.AndroidKeys
import portcullis.client.driver.URLTransport

private val logged = Collections.synchronizedList(ArrayList<String>())
@Volatile private var shift = 0L
private var client: PortcullisClient? = null
private var requirement = SigningRequirement()
/** How the next tokens of Google Play are made; the last way stays: `good`, `old`, `fail` or `hang`. */
private val ways = Collections.synchronizedList(arrayListOf("good"))
private val asked = AtomicInteger()

private object Tokens : PortcullisTokens {
    override fun token(requestHash: String): String {
        asked.incrementAndGet()
        val way = if (ways.size > 1) ways.removeAt(0) else ways[0]
        if (way == "fail") throw IOException("no Google Play")
        if (way == "hang") Thread.sleep(Long.MAX_VALUE)
        return Phone.ask("token", requestHash + " " + way)
    }
}

/** A clock that a test moves. A long wait moves it, too. */
private object Clock : PortcullisClock {
    override fun now() = System.currentTimeMillis() + shift
    override fun sleep(milliseconds: Long) {
        shift += milliseconds
    }
}

/** An app's own transport, whose fields have their names in capitals. */
private class LoudTransport : PortcullisTransport {
    private val transport = URLTransport()

    override fun exchange(
        method: String, url: URL, fields: List<PortcullisField>, content: PortcullisContent, readWait: Long
    ): TransportAnswer {
        val answer = transport.exchange(method, url, fields, content, readWait)
        return TransportAnswer(
            answer.status, answer.fields.map { PortcullisField(it.name.toUpperCase(), it.value) }, answer.stream
        )
    }
}

/** An app that starts. */
private fun started(words: List<String>): PortcullisClient {
    val limits = PortcullisLimits()
    fun word(name: String) = words.firstOrNull { it.startsWith(name + "=") }?.substringAfter('=')
    word("attempts")?.let { limits.maximumAttempts = it.toInt() }
    // A request waits for no hold, and an enrolment has its time.
    limits.enrolmentDelay = 8_000
    limits.proofWait = if ("hasty" in words) 100 else 3_000
    if ("patient" in words) { limits.enrolmentWait = 60_000; limits.proofWait = 60_000 }
    limits.deviceTokenWait = if ("hang" in ways) 200 else 10_000
    val builder = PortcullisConfiguration.Builder(
        words[1], words[2], File(words[3]), AndroidKeys("strongbox" in words)
    )
    if ("plain" in words) builder.transport(LoudTransport())
    if ("tokens" in words) builder.tokens(Tokens)
    builder.context(word("context")?.toByteArray()).enrolsWithToken("enrols-with-token" in words)
        .limits(limits).clock(Clock).routes(null).log { logged.add(it) }
    return PortcullisClient(builder.build())
}

/** How it was proven, or why it was not, and why it had no token of Google Play. */
private fun described(answer: PortcullisAnswer): String {
    val proof = answer.proof
    val word = when (proof) {
        is Proof.Assertion -> "proven"
        is Proof.Session -> "in-session"
        is Proof.None -> if (proof.saysUnsupported && proof.absence !is Absence.KeystoreFailed) "unsupported"
        else proof.absence.word
    }
    val token = if (answer.token.ordinal > 1) " token-" + answer.token.word else ""
    return "" + answer.status + " " + word + token
}

/** Sends a request; `STATUS PROOF` and what else came of it. */
private fun send(method: String, target: String, headers: Map<String, String>, body: String): String {
    val request = PortcullisRequest.Builder(method, target).fields(headers).content(body.toByteArray())
        .requirement(requirement).build()
    val outcome = client!!.send(request)
    outcome.response?.use { it.bytes() }
    return when (outcome) {
        is Outcome.Answered -> described(outcome.answer)
        is Outcome.MayHaveRun -> described(outcome.answer) + " may-have-run"
        is Outcome.GetToken -> described(outcome.answer) + " get-token"
        is Outcome.Unfit -> "unfit"
        is Outcome.Unproven -> "unproven " + outcome.absence
        is Outcome.Failed -> "error " + outcome.error.message
    }
}

private val faults = mapOf<String, () -> Exception>(
    "state" to { IllegalStateException("the keystore is not there") },
    "null" to { NullPointerException() },
    "provider" to { ProviderException("the keystore fails") },
    // As remote provisioning without a network.
    "transient" to {
        val code = KeyStoreException.ERROR_ATTESTATION_KEYS_UNAVAILABLE
        ProviderException(KeyStoreException(code, true, KeyStoreException.RETRY_WITH_EXPONENTIAL_BACKOFF))
    }
)

private fun obey(words: List<String>): String {
    when (words[0]) {
        // `start GATEWAY PACKAGE RECORD` and any of `context=TEXT`, `attempts=N`, `hasty`, `patient`, `plain`,
        // `tokens`, `enrols-with-token`, `strongbox`.
        "start" -> client = started(words)
        // `send METHOD TARGET BODY [NAME:VALUE]…`, `-` for no body. A tilde in a value is a letter that is not ASCII.
        "send" -> return send(
            words[1], words[2],
            words.drop(4).associate { it.substringBefore(':') to it.substringAfter(':').replace('~', 'é') },
            if (words[3] == "-") "" else words[3]
        )
        // `crowd COUNT TARGET`: as many threads, a request each.
        "crowd" -> {
            val threads = Executors.newFixedThreadPool(words[1].toInt())
            val work = Callable { send("GET", words[2], emptyMap(), "") }
            val answers = threads.invokeAll(List(words[1].toInt()) { work }).map { it.get() }
            threads.shutdown()
            return answers.groupBy { it }.map { it.key + " x" + it.value.size }.sorted().joinToString(", ")
        }
        // `interrupt COUNT TARGET`: as many requests, whose threads are interrupted soon after they began.
        "interrupt" -> for (number in 0 until words[1].toInt()) {
            val thread = Thread { send("GET", words[2], emptyMap(), "") }
            thread.start()
            Thread.sleep((number % 7).toLong())
            thread.interrupt()
            thread.join()
        }
        // What the app knows of its routes: `plan [session] [token]`.
        "plan" -> {
            requirement = SigningRequirement()
            if ("session" in words) requirement = requirement.takingSessions()
            if ("token" in words) requirement = requirement.askingToken()
        }
        // `tokens WAY…`: how they are made from now on; how often one was asked for before.
        "tokens" -> {
            ways.clear()
            ways.addAll(words.drop(1))
            return "" + asked.getAndSet(0)
        }
        "prepare" -> return "" + (client!!.prewarm() == null)
        "reset" -> return "" + client!!.reset()
        "sign-out" -> client!!.signOut()
        // `throw KIND`: what the keystore throws from now on; `nothing`.
        "throw" -> Phone.fault = faults[words[1]]
        "phone" -> {
            Phone.authority = words[1]
            Phone.hasStrongBox = "no-strongbox" !in words
            Phone.isBroken = "broken" in words
            Phone.isSlow = "slow" in words
            words.firstOrNull { it.startsWith("keys=") }?.let { Phone.folder = File(it.substringAfter('=')) }
        }
        "lose" -> Phone.entries.clear()
        "spoil" -> Phone.spoiled.addAll(Phone.entries.keys)
        "later" -> shift += words[1].toLong() * 1000
        "made" -> return Phone.made.joinToString(" ")
        // Keys are deleted beside requests.
        "keys" -> return "" + Phone.entries.size
        "log" -> return logged.joinToString(" | ").also { logged.clear() }
        else -> return "unknown command"
    }
    return "ok"
}

fun main() {
    Security.addProvider(SoftwareKeystoreProvider())
    while (true) {
        val line = readLine() ?: return
        println(obey(line.split(' ')))
    }
}
