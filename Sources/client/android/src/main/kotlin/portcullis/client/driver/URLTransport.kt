package portcullis.client.driver

import java.io.IOException
import java.net.HttpURLConnection
import java.net.URL
import portcullis.client.NO_CONTENT
import portcullis.client.PortcullisContent
import portcullis.client.PortcullisField
import portcullis.client.PortcullisLimits
import portcullis.client.PortcullisResponse
import portcullis.client.PortcullisTransport
import portcullis.client.TransportAnswer

/** Sends by [HttpURLConnection], follows no redirect, and has no cache. */
class URLTransport @JvmOverloads constructor(private val connectWait: Long = PortcullisLimits().connectWait) :
    PortcullisTransport {
    override fun exchange(
        method: String, url: URL, fields: List<PortcullisField>, content: PortcullisContent, readWait: Long
    ): TransportAnswer {
        // It would become a POST, which was not signed.
        if (method == "GET" && content.length > 0) throw IOException("HttpURLConnection sends no GET with content")
        val connection = url.openConnection() as HttpURLConnection
        connection.instanceFollowRedirects = false
        connection.useCaches = false
        connection.connectTimeout = milliseconds(connectWait)
        connection.readTimeout = milliseconds(readWait)
        connection.requestMethod = method
        for (field in fields) connection.addRequestProperty(field.name, field.value)
        if (content.length > 0 || method == "POST" || method == "PUT") send(content, connection)
        val status = connection.responseCode
        val answer = PortcullisResponse.flat(connection.headerFields)
        val stream = (if (status >= 400) connection.errorStream else connection.inputStream) ?: NO_CONTENT
        return TransportAnswer(status, answer, stream)
    }

    /** As a stream, which the connection can't send a second time by itself when an answer is lost. */
    private fun send(content: PortcullisContent, connection: HttpURLConnection) {
        connection.doOutput = true
        connection.setFixedLengthStreamingMode(content.length)
        try {
            connection.outputStream.use { out -> content.open().use { it.copyTo(out, 64 * 1024) } }
        } catch (error: IOException) {
            // A gateway that refuses answers before the content has come, and closes. Its answer may be there.
            if (connection.responseCodeOrNone() < 0) throw error
        }
    }

    private fun HttpURLConnection.responseCodeOrNone(): Int =
        try {
            responseCode
        } catch (error: IOException) {
            -1
        }

    private fun milliseconds(time: Long) = minOf(maxOf(time, 0), Int.MAX_VALUE.toLong()).toInt()
}
