package portcullis.client.driver

import java.util.concurrent.TimeUnit
import portcullis.client.KeyFailure
import portcullis.client.KeyFailure.Kind
import portcullis.client.PortcullisKeys
import portcullis.client.PortcullisLimits
import portcullis.client.machine.base64
import portcullis.client.machine.sha256

/** A keystore whose calls end after a while, and whose failures are all of a kind. A slow call goes on by itself. */
internal class TimedKeys(private val keys: PortcullisKeys, private val limits: PortcullisLimits) {
    /** What a call of the keystore came to. */
    sealed class Result<T> {
        class Made<T>(val value: T) : Result<T>()
        class Failed<T>(val kind: Kind) : Result<T>()
    }

    /** A key as the gateway gets it. */
    class Description(val keyId: String, val chain: List<ByteArray>)

    private val calls = TimedCalls(PortcullisLimits.KEYSTORE_CALLS)
    /** The key that is being made. */
    private var making: Pair<String, Shared<Result<Unit>>>? = null
    /** When a request tries more than once again to be signed, by [System.nanoTime]. */
    @Volatile private var lullEnd = 0L
    @Volatile private var isInLull = false

    private fun <T : Any> begin(work: () -> T): Shared<Result<T>>? = calls.begin<Result<T>> {
        try {
            Result.Made(KeyFailure.checked(work))
        } catch (error: KeyFailure) {
            Result.Failed<T>(error.kind)
        } catch (error: Throwable) {
            // An Error: whoever waits is told.
            Result.Failed<T>(Kind.BROKEN)
        }
    }

    private fun <T : Any> call(milliseconds: Long, work: () -> T): Result<T> =
        begin(work)?.value(milliseconds) ?: Result.Failed(Kind.TRANSIENT)

    /**
     * Makes a key, or waits for the call that was begun for the same one.
     *
     * @param isFresh whether a key of this name is of another challenge.
     */
    @Synchronized
    fun generate(alias: String, challenge: ByteArray, isFresh: Boolean): Result<Unit> {
        making?.let { (name, work) ->
            val result = work.value(limits.serviceWait) ?: return Result.Failed(Kind.TRANSIENT)
            making = null
            if (name == alias && !isFresh) return result
        }
        val work = begin {
            // One whose making was not waited for, or that was made before this process began.
            if (isFresh || keys.point(alias) == null) keys.generate(alias, challenge)
        } ?: return Result.Failed(Kind.TRANSIENT)
        making = Pair(alias, work)
        val result = work.value(limits.serviceWait) ?: return Result.Failed(Kind.TRANSIENT)
        making = null
        return result
    }

    /** A key's id and certificates. */
    fun describe(alias: String): Result<Description> = call(limits.serviceWait) {
        val point = keys.point(alias) ?: throw KeyFailure(Kind.MISSING)
        val chain = keys.chain(alias)
        if (chain.isEmpty()) throw KeyFailure(Kind.MISSING)
        Description(base64(sha256(point)), chain)
    }

    /**
     * Signs. What may pass is tried again, later and later, a few times: a request waits for it. Requests that come
     * soon after one that tried in vain try once, so that they don't queue up.
     */
    fun sign(alias: String, message: ByteArray, milliseconds: Long, jitter: () -> Double): Result<ByteArray> {
        val end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(milliseconds)
        var tries = 0
        while (true) {
            val left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime())
            val result = call(left) { keys.sign(alias, message) ?: throw KeyFailure(Kind.MISSING) }
            tries += 1
            if (result !is Result.Failed || result.kind != Kind.TRANSIENT) {
                isInLull = false
                return result
            }
            val delay = (RETRY_DELAY * (1 shl tries) * (0.5 + jitter() / 2)).toLong()
            val mayWait = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(delay) < end
            val isCalm = isInLull && System.nanoTime() < lullEnd
            if (tries >= PortcullisLimits.SIGNING_TRIES_MAX || !mayWait || isCalm) {
                if (!isCalm) lullEnd = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LULL)
                isInLull = true
                return result
            }
            try {
                Thread.sleep(delay)
            } catch (error: InterruptedException) {
                Thread.currentThread().interrupt()
                return result
            }
        }
    }

    /** Deletes a key that is not used any more. What fails leaves a key that nothing uses. */
    fun delete(alias: String) {
        begin { keys.delete(alias) }
    }

    private companion object {
        /** Half of the first delay between two tries to sign. */
        const val RETRY_DELAY = 125L
        const val LULL = 10_000L
    }
}
