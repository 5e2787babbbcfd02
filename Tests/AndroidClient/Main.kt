// An app with PortcullisClient on a phone in software, as a test tells it: a command a line, an answer a line.
package portcullis.test

import android.security.keystore.Phone
import android.security.keystore.SoftwareKeystoreProvider
import java.io.File
import java.io.IOException
import java.net.URL
import java.security.Security
import java.util.Collections
import java.util.concurrent.Callable
import java.util.concurrent.Executors
import portcullis.client.PortcullisClient
import portcullis.client.PortcullisRequest

private val logged = Collections.synchronizedList(ArrayList<String>())
@Volatile private var shift = 0L
private var client: PortcullisClient? = null

/** Sends a request; `STATUS ABSENCE`. */
private fun send(method: String, target: String, headers: Map<String, String>, body: String): String =
    try {
        val answer = client!!.send(PortcullisRequest(method, target, headers, body.toByteArray()))
        "" + answer.status + " " + (answer.absence ?: "proven")
    } catch (error: IOException) {
        "error " + error.message
    }

private fun obey(words: List<String>): String {
    when (words[0]) {
        // An app that starts: `start GATEWAY PACKAGE RECORD [CONTEXT]`.
        "start" -> client = PortcullisClient(
            gateway = URL(words[1]),
            packageName = words[2],
            record = File(words[3]),
            context = words.getOrNull(4)?.toByteArray(),
            now = { System.currentTimeMillis() + shift },
            pause = { shift += it },
            log = { logged.add(it) }
        )
        // `send METHOD TARGET BODY [NAME:VALUE]…`, `-` for no body.
        "send" -> return send(
            words[1], words[2],
            words.drop(4).associate { it.substringBefore(':') to it.substringAfter(':') },
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
        "prepare" -> return "" + client!!.prepare()
        "reset" -> client!!.reset()
        "phone" -> {
            Phone.attester = words[1]
            Phone.hasStrongBox = "no-strongbox" !in words
            Phone.isBroken = "broken" in words
        }
        "lose" -> Phone.entries.clear()
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
