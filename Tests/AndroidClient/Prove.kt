// The client on the proving ground: asks for the next step, does it, and reports what the app got.
package portcullis.prove

import java.io.File
import java.net.HttpURLConnection
import java.net.URL
import java.util.Base64
import java.util.concurrent.Callable
import java.util.concurrent.Executors
import kotlin.concurrent.thread
import kotlin.system.exitProcess
import portcullis.client.Absence
import portcullis.client.KeyFailure
import portcullis.client.Outcome
import portcullis.client.PortcullisClient
import portcullis.client.PortcullisClock
import portcullis.client.PortcullisConfiguration
import portcullis.client.PortcullisKeys
import portcullis.client.PortcullisRequest
import portcullis.client.Proof
import portcullis.client.machine.Json

private fun post(url: String, document: Any): Map<*, *> {
    val connection = URL(url).openConnection() as HttpURLConnection
    connection.doOutput = true
    connection.outputStream.use { it.write(Json.text(document).toByteArray()) }
    val stream = if (connection.responseCode >= 400) connection.errorStream else connection.inputStream
    return Json.objectOf(stream.use { it.readBytes() }.toString(Charsets.UTF_8)) ?: emptyMap<String, Any>()
}

private fun bytes(text: Any?) = Base64.getDecoder().decode(text as String)

/** The device that the proving ground plays, as Android's keystore: it keeps an install's keys under their names. */
private class Device(private val url: String, private val record: String) : PortcullisKeys {
    /** `null` where it has no such key. */
    private fun ask(call: String, alias: String, vararg more: Pair<String, ByteArray>): Map<*, *>? {
        val question = more.associate { (name, value) -> name to Base64.getEncoder().encodeToString(value) }
        val answer = post(url + call, question + ("key" to record + alias))
        return when (answer["error"]) {
            null -> answer
            "missing" -> null
            "transient", "locked" -> throw KeyFailure(KeyFailure.Kind.TRANSIENT)
            "runtime" -> throw IllegalStateException("a keystore that throws what it likes")
            else -> throw KeyFailure(KeyFailure.Kind.BROKEN)
        }
    }

    override fun generate(alias: String, attestationChallenge: ByteArray) {
        ask("/keys", alias, "challenge" to attestationChallenge)
    }

    override fun chain(alias: String) = (ask("/chain", alias)?.get("chain") as? List<*>).orEmpty().map { bytes(it) }

    override fun point(alias: String) = ask("/chain", alias)?.let { bytes(it["point"]) }

    override fun sign(alias: String, message: ByteArray) =
        ask("/sign", alias, "message" to message)?.let { bytes(it["signature"]) }

    override fun delete(alias: String) {
        ask("/delete", alias)
    }
}

/** The time of day, and what the steps have added. */
private class ShiftedClock(@Volatile var ahead: Any?) : PortcullisClock {
    override fun now() = System.currentTimeMillis() + ((ahead as Double) * 1000).toLong()
    override fun sleep(milliseconds: Long) = Thread.sleep(milliseconds)
}

private class App(start: Map<*, *>, folder: File) {
    val clock = ShiftedClock(start["ahead"])
    val client = PortcullisClient(
        PortcullisConfiguration.Builder(
            start["gateway"] as String, start["package"] as String, File(folder, start["record"] as String),
            Device(start["device"] as String, start["record"] as String)
        ).context((start["context"] as? String)?.toByteArray()).fetchesPlan(start["plan"] == true)
            .usesSessions(start["sessions"] == true).clock(clock).build()
    )

    fun answer(request: Map<*, *>): Map<String, Any> {
        val built = PortcullisRequest.Builder(request["method"] as String, request["path"] as String)
        for ((name, value) in (request["fields"] as List<*>).map { it as List<*> }) built.field("$name", "$value")
        request["content"]?.let { built.content(bytes(it)) }
        val outcome = client.send(built.build())
        val answer = HashMap<String, Any>()
        outcome.response?.let { response ->
            response.use { it.bytes() }
            answer["status"] = response.status
            answer["fields"] = response.fields.associate { it.name to it.value }
        }
        answer["outcome"] = when (outcome) {
            // Where its rule observes, it was served without a proof.
            is Outcome.Answered ->
                if ((outcome.answer.proof as? Proof.None)?.absence == Absence.RequestUnfit) "unfit" else "answered"
            is Outcome.MayHaveRun -> "may-have-run"
            is Outcome.GetToken -> "get-token".also { answer["tokens"] = outcome.tokens }
            is Outcome.Unfit -> "unfit"
            is Outcome.Unproven -> "failed".also { answer["error"] = outcome.absence.word }
            is Outcome.Failed -> "failed".also { answer["error"] = "" + outcome.error }
        }
        return answer
    }
}

/** `prove SERVER FOLDER`. */
fun main(words: Array<String>) {
    val apps = HashMap<Any?, App>()
    val threads = Executors.newCachedThreadPool()

    fun app(step: Map<*, *>) = apps[step["process"]] ?: throw IllegalStateException("no such process")

    fun answers(requests: List<*>) =
        threads.invokeAll(requests.map { it as Map<*, *> }.map { Callable { app(it).answer(it) } }).map { it.get() }

    /** The content of the next question. */
    fun done(step: Map<*, *>): Map<String, Any> {
        when (step["do"]) {
            "start" -> apps[step["process"]] = App(step, File(words[1]))
            "send" -> return mapOf("answers" to answers(step["requests"] as List<*>))
            "clock" -> app(step).clock.ahead = step["ahead"]
            "prewarm" -> app(step).let { thread { it.client.prewarm() } }
            "reset" -> app(step).client.reset((step["context"] as? String)?.toByteArray())
            "sign-out" -> app(step).client.signOut()
            "stop" -> apps.remove(step["process"])
            else -> throw IllegalStateException("no such step")
        }
        return emptyMap()
    }

    val offers = listOf(
        "clock", "plan", "sessions", "processes", "installs", "contexts", "redirects", "reset", "prewarm"
    )
    var content: Map<String, Any> = mapOf("client" to "kotlin", "platform" to "android", "offers" to offers)
    while (true) {
        val step = post(words[0] + "/next", content)
        check("do" in step) { "the proving ground says: " + step["error"] }
        if (step["do"] == "end") exitProcess(if (step["failed"] == 0.0) 0 else 1)
        content = try {
            done(step)
        } catch (error: Exception) {
            mapOf("error" to "" + error)
        }
    }
}
