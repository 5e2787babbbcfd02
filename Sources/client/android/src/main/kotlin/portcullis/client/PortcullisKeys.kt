package portcullis.client

import java.io.IOException
import java.security.GeneralSecurityException

/** Why a keystore did nothing. */
class KeyFailure @JvmOverloads constructor(@JvmField val kind: Kind, cause: Throwable? = null) :
    GeneralSecurityException(kind.word, cause) {
    /** More may come: a `when` over it has an `else`. */
    enum class Kind(@JvmField val word: String) {
        /** It may pass: the phone is locked or busy, or its remote provisioning has no key now. */
        TRANSIENT("transient"),
        /** The key is gone. */
        MISSING("missing"),
        /** Anything else. */
        BROKEN("broken")
    }

    internal companion object {
        /**
         * Work of the keystore, whose failures are all [KeyFailure]. Keystores of phones throw what they like:
         * `IllegalStateException`, `NullPointerException` and `ProviderException` were seen. None reaches the app.
         */
        inline fun <T> checked(work: () -> T): T =
            try {
                work()
            } catch (error: KeyFailure) {
                throw error
            } catch (error: GeneralSecurityException) {
                throw KeyFailure(Kind.BROKEN, error)
            } catch (error: RuntimeException) {
                throw KeyFailure(Kind.BROKEN, error)
            } catch (error: IOException) {
                throw KeyFailure(Kind.TRANSIENT, error)
            }
    }
}

/** What makes keys and signs with them. Whatever it throws that is no [KeyFailure] counts as one that is broken. */
interface PortcullisKeys {
    /** Makes a key on P-256 that signs SHA-256, attested over a challenge, in the place of one of the same name. */
    @Throws(GeneralSecurityException::class)
    fun generate(alias: String, attestationChallenge: ByteArray)

    /** The certificates of a key, DER, the leaf first; empty where there is no key. */
    @Throws(GeneralSecurityException::class)
    fun chain(alias: String): List<ByteArray>

    /** The key's point, X9.62, 65 bytes; `null` where there is no key. */
    @Throws(GeneralSecurityException::class)
    fun point(alias: String): ByteArray?

    /** SHA256withECDSA, DER; `null` where there is no key. */
    @Throws(GeneralSecurityException::class)
    fun sign(alias: String, message: ByteArray): ByteArray?

    @Throws(GeneralSecurityException::class)
    fun delete(alias: String)
}
