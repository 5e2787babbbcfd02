// An app that sends by OkHttp, by coroutines and from Java, on a phone in software. It prints what each of them got.
package portcullis.test

import android.security.keystore.Phone
import android.security.keystore.SoftwareKeystoreProvider
import java.io.File
import java.security.Security
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlin.coroutines.Continuation
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.coroutines.startCoroutine
import okhttp3.MediaType
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody
import portcullis.client.Outcome
import portcullis.client.PortcullisClient
import portcullis.client.PortcullisConfiguration
import portcullis.client.PortcullisRequest
import portcullis.client.android.AndroidKeys
import portcullis.client.prewarmSuspending
import portcullis.client.sendSuspending
import portcullis.recipes.PortcullisInterceptor

private fun client(words: Array<String>): PortcullisClient {
    val builder = PortcullisConfiguration.Builder(words[1], words[2], File(words[3]), AndroidKeys())
    return PortcullisClient(builder.build())
}

private fun http(client: PortcullisClient, method: String, url: String): String {
    val http = OkHttpClient.Builder().addInterceptor(PortcullisInterceptor(client)).build()
    val body = if (method == "POST") RequestBody.create(MediaType.parse("text/plain"), "lamp") else null
    return try {
        http.newCall(Request.Builder().url(url).method(method, body).build()).execute().use {
            "" + it.code() + " " + it.body()?.string()
        }
    } catch (error: PortcullisInterceptor.MayHaveRunException) {
        "may have run"
    } finally {
        http.dispatcher().executorService().shutdown()
        http.connectionPool().evictAll()
    }
}

private fun suspending(client: PortcullisClient): String {
    val done = CountDownLatch(1)
    var got = ""
    suspend {
        val absence = client.prewarmSuspending()
        val outcome = client.sendSuspending(PortcullisRequest("GET", "/v1/orders"))
        "" + absence + " " + (outcome as? Outcome.Answered)?.answer?.text()
    }.startCoroutine(object : Continuation<String> {
        override val context = EmptyCoroutineContext

        override fun resumeWith(result: Result<String>) {
            got = result.getOrElse { "" + it }
            done.countDown()
        }
    })
    done.await(30, TimeUnit.SECONDS)
    return got
}

/** `AUTHORITY GATEWAY PACKAGE RECORD WHAT`. */
fun main(words: Array<String>) {
    Security.addProvider(SoftwareKeystoreProvider())
    Phone.authority = words[0]
    val client = client(words)
    println(
        when (words[4]) {
            "okhttp-get" -> http(client, "GET", words[1] + "/v1/orders?page=2")
            "okhttp-post" -> http(client, "POST", words[1] + "/v1/orders")
            "suspend" -> suspending(client)
            "java" -> FromJava.send(words[1], words[2], File(words[3]))
            else -> "unknown command"
        }
    )
}
