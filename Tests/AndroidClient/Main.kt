// An app with PortcullisClient on a phone in software, as a test tells it: a command a line, an answer a line.
package portcullis.test

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
import portcullis.client.PortcullisAnswer
import portcullis.client.PortcullisClient
import portcullis.client.PortcullisLimits
import portcullis.client.PortcullisRequest
import portcullis.client.PortcullisSigning
import portcullis.client.PortcullisTransport
import portcullis.client.URLTransport

private val logged = Collections.synchronizedList(ArrayList<String>())
@Volatile private var shift = 0L
private var client: PortcullisClient? = null
private var signing = PortcullisSigning()
/** How the next tokens of Google Play are made; the last way stays: `good`, `old`, `fail` or `hang`. */
private val ways = Collections.synchronizedList(arrayListOf("good"))
private val asked = AtomicInteger()

private fun token(requestHash: String): String {
    asked.incrementAndGet()
    val way = if (ways.size > 1) ways.removeAt(0) else ways[0]
    if (way == "fail") throw IOException("no Google Play")
    if (way == "hang") Thread.sleep(Long.MAX_VALUE)
    return Phone.ask("token", requestHash + " " + way)
}

/** An app's own transport: its map of fields has their names as they came. */
private class PlainTransport(limits: PortcullisLimits) : PortcullisTransport {
    private val transport = URLTransport(limits)

    override fun exchange(method: String, url: URL, headers: Map<String, String>, body: ByteArray): PortcullisAnswer {
        val answer = transport.exchange(method, url, headers, body)
        return PortcullisAnswer(answer.status, HashMap(answer.headers), answer.body)
    }
}

private fun limits(words: List<String>) = PortcullisLimits(
    attempts = words.firstOrNull { it.startsWith("attempts=") }?.substringAfter('=')?.toInt() ?: 3,
    enrolmentWait = if ("hasty" in words) 100 else 10_000,
    tokenWait = if ("hang" in ways) 200 else 10_000
)

/** Sends a request; `STATUS ABSENCE`, or how it was proven, and why it had no token of Google Play. */
private fun send(method: String, target: String, headers: Map<String, String>, body: String): String =
    try {
        val answer = client!!.send(PortcullisRequest(method, target, headers, body.toByteArray(), signing))
        val proof = if (answer.isInSession) "in-session" else "proven"
        "" + answer.status + " " + (answer.absence ?: proof) + (answer.tokenAbsence?.let { " token-" + it } ?: "") +
            (if (answer.mayHaveRun) " may-have-run" else "")
    } catch (error: IOException) {
        "error " + error.message
    }

private val faults = mapOf<String, () -> RuntimeException>(
    "state" to { IllegalStateException("the keystore is not there") },
    "null" to { NullPointerException() },
    "provider" to { ProviderException("the keystore fails") }
)

private fun obey(words: List<String>): String {
    when (words[0]) {
        // An app that starts: `start GATEWAY PACKAGE RECORD` and any of `context=TEXT`, `attempts=N`, `hasty`, `plain`,
        // `tokens`, `enrols-with-token`.
        "start" -> client = PortcullisClient(
            gateway = URL(words[1]),
            packageName = words[2],
            record = File(words[3]),
            context = words.firstOrNull { it.startsWith("context=") }?.substringAfter('=')?.toByteArray(),
            tokens = if ("tokens" in words) ::token else null,
            enrolsWithToken = "enrols-with-token" in words,
            limits = limits(words),
            transport = limits(words).let { if ("plain" in words) PlainTransport(it) else URLTransport(it) },
            now = { System.currentTimeMillis() + shift },
            pause = { shift += it },
            log = { logged.add(it) }
        )
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
        // What the app knows of its routes: `plan [session] [token]`.
        "plan" -> signing = PortcullisSigning(takesSession = "session" in words, asksToken = "token" in words)
        // `tokens WAY…`: how they are made from now on; how often one was asked for before.
        "tokens" -> {
            ways.clear()
            ways.addAll(words.drop(1))
            return "" + asked.getAndSet(0)
        }
        "prepare" -> return "" + client!!.prepare()
        "reset" -> return "" + client!!.reset()
        "sign-out" -> client!!.signOut()
        // `throw KIND`: what the keystore throws from now on; `nothing`.
        "throw" -> Phone.fault = faults[words[1]]
        "phone" -> {
            Phone.authority = words[1]
            Phone.hasStrongBox = "no-strongbox" !in words
            Phone.isBroken = "broken" in words
            Phone.isSlow = "slow" in words
        }
        "lose" -> Phone.entries.clear()
        "spoil" -> Phone.spoiled.addAll(Phone.entries.keys)
        "later" -> shift += words[1].toLong() * 1000
        "made" -> return Phone.made.joinToString(" ")
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
