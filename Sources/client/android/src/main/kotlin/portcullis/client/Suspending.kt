package portcullis.client

import kotlin.coroutines.resume
import kotlin.coroutines.resumeWithException
import kotlin.coroutines.suspendCoroutine
import portcullis.client.driver.Threads

// The calls for coroutines, without a dependency on their library: each runs on a thread of the client's own, and a
// coroutine that is cancelled meanwhile has its outcome dropped. Under kotlinx.coroutines, `runInterruptible` around
// the plain call ends it at once instead.

/** [PortcullisClient.send]. */
suspend fun PortcullisClient.sendSuspending(request: PortcullisRequest): Outcome = aside { send(request) }

/** [PortcullisClient.sign]. */
suspend fun PortcullisClient.signSuspending(request: PortcullisRequest): SignedRequest = aside { sign(request) }

/** [PortcullisClient.signAgain]. */
suspend fun PortcullisClient.signAgainSuspending(signed: SignedRequest, response: PortcullisResponse): Step =
    aside { signAgain(signed, response) }

/** [PortcullisClient.prewarm]. */
suspend fun PortcullisClient.prewarmSuspending(): Absence? = aside { prewarm() }

private suspend fun <T> aside(work: () -> T): T = suspendCoroutine { continuation ->
    Threads.run {
        val result = try {
            work()
        } catch (error: Exception) {
            continuation.resumeWithException(error)
            return@run
        }
        continuation.resume(result)
    }
}
