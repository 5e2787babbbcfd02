// The client on the proving ground: asks for the next step, does it, and reports what the app got.
package portcullis.prove

import java.io.File
import java.net.HttpURLConnection
import java.net.URL
import java.util.Base64
import java.util.concurrent.Callable
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.Executors
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

/** The device that the proving ground plays. Handles are kept by alias, as a keystore keeps its keys. */
private class Device(private val url: String, private val install: String) : PortcullisKeys {
    private class Key(val handle: String, val chain: List<ByteArray>)

    private fun ask(name: String, question: Any): Map<*, *> {
        val answer = post(url + "/" + name, question)
        when (answer["error"]) {
            null -> return answer
            "transient", "locked" -> throw KeyFailure(KeyFailure.Kind.TRANSIENT)
            "missing" -> throw KeyFailure(KeyFailure.Kind.MISSING)
            "runtime" -> throw IllegalStateException("a keystore that throws what it likes")
            else -> throw KeyFailure(KeyFailure.Kind.BROKEN)
        }
    }

    override fun generate(alias: String, attestationChallenge: ByteArray) {
        val made = ask("keys", mapOf("challenge" to Base64.getEncoder().encodeToString(attestationChallenge)))
        val chain = (made["chain"] as List<*>).map { Base64.getDecoder().decode(it as String) }
        keys[install + alias] = Key(made["key"] as String, chain)
    }

    override fun chain(alias: String) = keys[install + alias]?.chain ?: emptyList()

    /** The point is at the end of the leaf's key, which its algorithm announces. */
    override fun point(alias: String): ByteArray? = keys[install + alias]?.let { key ->
        val factory = java.security.cert.CertificateFactory.getInstance("X.509")
        factory.generateCertificate(key.chain[0].inputStream()).publicKey.encoded.takeLast(65).toByteArray()
    }

    override fun sign(alias: String, message: ByteArray): ByteArray? = keys[install + alias]?.let { key ->
        val question = mapOf("key" to key.handle, "message" to Base64.getEncoder().encodeToString(message))
        Base64.getDecoder().decode(ask("sign", question)["signature"] as String)
    }

    override fun delete(alias: String) {
        keys.remove(install + alias)?.let { ask("delete", mapOf("key" to it.handle)) }
    }

    companion object {
        val keys = ConcurrentHashMap<String, Key>()
    }
}

private class Driver(private val folder: File) {
    private val clients = HashMap<Int, PortcullisClient>()
    private val threads = Executors.newCachedThreadPool()
    @Volatile private var shift = 0L
    private var installs = 0

    private val clock = object : PortcullisClock {
        override fun now() = System.currentTimeMillis() + shift
        override fun sleep(milliseconds: Long) = Thread.sleep(milliseconds)
    }

    private fun start(step: Map<*, *>) {
        if (step["state"] == "new") {
            installs += 1
            Device.keys.clear()
        }
        val name = "record-" + installs + if (step["state"] == "another") "-" + process(step) else ""
        val builder = PortcullisConfiguration.Builder(
            step["gateway"] as String, step["package"] as? String ?: PACKAGE, File(folder, name),
            Device(step["device"] as String, name)
        )
        builder.context((step["context"] as? String)?.toByteArray()).fetchesPlan(step["plan"] == true)
            .usesSessions(step["sessions"] == true).clock(clock)
        clients[process(step)] = PortcullisClient(builder.build())
    }

    private fun process(step: Map<*, *>) = (step["process"] as? Double ?: 0.0).toInt()

    private fun client(step: Map<*, *>) = client(process(step))

    private fun client(number: Int) = clients[number] ?: throw IllegalStateException("no such process")

    private fun send(step: Map<*, *>): Map<String, Any> {
        val beside = (step["beside"] as? List<*> ?: emptyList<Any>()).map { client((it as Double).toInt()) }
        val count = (step["count"] as? Double ?: 1.0).toInt()
        val asked = (listOf(client(step)) + beside).flatMap { client -> List(count) { client to it } }
        val work = asked.map { (client, number) ->
            Callable {
                fun filled(text: Any?) = (text as String).replace("{n}", "" + number)
                val request = PortcullisRequest.Builder(step["method"] as String, filled(step["path"]))
                for (field in step["fields"] as? List<*> ?: emptyList<Any>()) {
                    val (name, value) = field as List<*>
                    request.field(filled(name), filled(value))
                }
                (step["content"] as? String)?.let { request.content(it.toByteArray()) }
                answer(client.send(request.build()))
            }
        }
        return mapOf("answers" to threads.invokeAll(work).map { it.get() })
    }

    private fun answer(outcome: Outcome): Map<String, Any> {
        val answer = HashMap<String, Any>()
        outcome.response?.let { response ->
            response.use { it.bytes() }
            answer["status"] = response.status
            answer["fields"] = response.fields.associate { it.name.toLowerCase() to it.value }
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

    /** Does a step; the content of the next question. */
    fun done(step: Map<*, *>): Map<String, Any> {
        when (step["do"]) {
            "start" -> start(step)
            "send" -> return send(step)
            "clock" -> shift += ((step["seconds"] as Double) * 1000).toLong()
            "prewarm" -> client(step).prewarm()
            "reset" -> client(step).reset((step["context"] as? String)?.toByteArray())
            "sign-out" -> client(step).signOut()
            "stop" -> clients.remove(process(step))
            else -> return mapOf("error" to "no such step")
        }
        return emptyMap()
    }

    private companion object {
        const val PACKAGE = "com.example.shop"
    }
}

/** `prove SERVER FOLDER`. */
fun main(words: Array<String>) {
    val driver = Driver(File(words[1]))
    var content: Map<String, Any> = mapOf(
        "client" to "kotlin", "platform" to "android",
        "offers" to listOf(
            "clock", "plan", "sessions", "processes", "installs", "contexts", "redirects", "reset", "prewarm"
        )
    )
    while (true) {
        val step = post(words[0] + "/next", content)
        if (step["do"] == null) {
            System.err.println("the proving ground says: " + step["error"])
            exitProcess(2)
        }
        if (step["do"] == "end") exitProcess(if (step["failed"] == 0.0) 0 else 1)
        content = try {
            driver.done(step)
        } catch (error: Exception) {
            mapOf("error" to "" + error)
        }
    }
}
