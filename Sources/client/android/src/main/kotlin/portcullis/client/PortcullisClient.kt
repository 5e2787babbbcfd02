package portcullis.client

import java.io.IOException
import portcullis.client.driver.KeyOutcome
import portcullis.client.driver.RequestDriver
import portcullis.client.driver.Sender

/**
 * The client of a Portcullis gateway for Android, with one key for the install. The guide is docs/android.md.
 *
 *     val configuration = PortcullisConfiguration.Builder(
 *         "https://api.example.com", context.packageName, File(context.noBackupFilesDir, "portcullis"), AndroidKeys()
 *     ).build()
 *     val client = PortcullisClient(configuration)
 *     when (val outcome = client.send(PortcullisRequest("POST", "/v1/orders", body = order))) {
 *         is Outcome.Answered -> outcome.answer.text()
 *         …
 *     }
 *
 * It needs Android 8 (API 26) and nothing besides java.* and android.security.keystore. Its calls block: make them on a
 * thread that may wait, or take the `suspend` forms. Any number of threads, and processes of the app, may use a record.
 */
class PortcullisClient(configuration: PortcullisConfiguration) {
    private val driver = RequestDriver(configuration)
    private val sender = Sender(driver)
    private val limits = configuration.limits

    /**
     * Sends a request with the proof that its route asks for, and does what the gateway says. It throws nothing but
     * what is wrong in the call itself.
     *
     * @throws IllegalArgumentException where the target or URL can't be sent.
     */
    fun send(request: PortcullisRequest): Outcome = sender.send(request)

    /**
     * Signs a request that another HTTP stack sends.
     *
     * @throws IOException where its content can't be read.
     * @throws IllegalArgumentException where the target or URL can't be sent.
     */
    @Throws(IOException::class)
    fun sign(request: PortcullisRequest): SignedRequest = sender.sign(request)

    /**
     * Learns from the answer to a signed request, and signs it again where that helps. Call it with each answer, also
     * with good ones: they bring the next challenge. It waits where the gateway asks for that.
     */
    @Throws(IOException::class)
    fun signAgain(signed: SignedRequest, response: PortcullisResponse): Step = sender.signAgain(signed, response)

    /** Learns from the answer to a signed request that is not sent again, whatever it says. */
    fun learn(signed: SignedRequest, response: PortcullisResponse): Outcome = sender.learn(signed, response)

    /**
     * Enrols the key, fetches challenges, and opens a session where a rule of the plan takes one, so that the first
     * request need not wait. Returns `null` when a request could be proven now, else why not.
     */
    fun prewarm(): Absence? {
        val outcome = driver.prover.enroller.key(limits.enrolmentWait)
        if (outcome is KeyOutcome.None) return outcome.absence
        driver.plans?.prepare(limits.planWait) { false }
        if (driver.usesSessions && driver.routes.takesSessions) driver.prover.openSession()
        driver.prover.challenges.refill()
        return null
    }

    /**
     * Forgets the key, the session and the challenges. What is under way ends. The next key has this context.
     *
     * Where a day allows no other key ([PortcullisLimits.keysPerDay]), it stays, unless it is bound to a context:
     * without it no request could be proven until the next day.
     *
     * @param context what the gateway keeps with the next key: 1 to 256 bytes; `null` for nothing.
     * @return whether the key was forgotten, or will be once the record can be written.
     * @throws IllegalArgumentException for another number of bytes. Nothing is forgotten then.
     */
    @JvmOverloads
    fun reset(context: ByteArray? = null): Boolean {
        require(context == null || context.size in 1..PortcullisLimits.CONTEXT_BYTES) {
            "the context has no byte, or more than 256"
        }
        // The session first, so that none is opened with the old key meanwhile.
        driver.prover.sessions.reset()
        val isForgotten = driver.prover.enroller.reset(context)
        driver.prover.sessions.reset()
        driver.prover.challenges.clear()
        return isForgotten
    }

    /**
     * Forgets what belongs to a user who signs out: the session, the challenges, and the context that the next key
     * would have. An enrolled key stays: it is the phone's. An app that binds keys to accounts calls [reset] when the next
     * user signs in.
     */
    fun signOut() {
        driver.prover.sessions.reset()
        driver.prover.enroller.signOut()
        driver.prover.sessions.reset()
        driver.prover.challenges.clear()
    }

    /** Ends what waits. Requests that are still sent carry no proof. */
    fun close() {
        driver.prover.enroller.close()
        driver.prover.sessions.reset()
        driver.plans?.close()
    }
}
