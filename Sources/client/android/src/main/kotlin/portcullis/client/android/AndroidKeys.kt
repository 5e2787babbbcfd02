package portcullis.client.android

import android.os.Build
import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyProperties
import android.security.keystore.StrongBoxUnavailableException
import java.security.KeyPairGenerator
import java.security.KeyStore
import java.security.PrivateKey
import java.security.Signature
import java.security.interfaces.ECPublicKey
import java.security.spec.ECGenParameterSpec
import portcullis.client.KeyFailure
import portcullis.client.PortcullisKeys

/**
 * Keys of Android's keystore.
 *
 * @param prefersStrongBox whether keys are made in a StrongBox where the phone has one. A signature takes some
 * milliseconds in the TEE, and up to seconds in a StrongBox; take it where rules ask for that.
 */
class AndroidKeys @JvmOverloads constructor(
    private val prefersStrongBox: Boolean = false,
    private val provider: String = "AndroidKeyStore"
) : PortcullisKeys {
    private val store: KeyStore by lazy { KeyStore.getInstance(provider).apply { load(null) } }

    override fun generate(alias: String, attestationChallenge: ByteArray) = understood {
        if (prefersStrongBox && Build.VERSION.SDK_INT >= 28) {
            try {
                return@understood generate(alias, attestationChallenge, true)
            } catch (error: StrongBoxUnavailableException) {
                // The TEE has its place.
            }
        }
        generate(alias, attestationChallenge, false)
    }

    private fun generate(alias: String, attestationChallenge: ByteArray, isStrongBox: Boolean) {
        val spec = KeyGenParameterSpec.Builder(alias, KeyProperties.PURPOSE_SIGN)
            .setAlgorithmParameterSpec(ECGenParameterSpec("secp256r1"))
            .setDigests(KeyProperties.DIGEST_SHA256)
            .setAttestationChallenge(attestationChallenge)
        if (isStrongBox) spec.setIsStrongBoxBacked(true)
        val generator = KeyPairGenerator.getInstance(KeyProperties.KEY_ALGORITHM_EC, provider)
        generator.initialize(spec.build())
        generator.generateKeyPair()
    }

    override fun chain(alias: String): List<ByteArray> = understood {
        store.getCertificateChain(alias)?.map { it.encoded } ?: emptyList()
    }

    override fun point(alias: String): ByteArray? = understood {
        (store.getCertificate(alias)?.publicKey as? ECPublicKey)?.w?.let { point ->
            val numbers = listOf(point.affineX, point.affineY).map { number ->
                val bytes = number.toByteArray().takeLast(32)
                List(32 - bytes.size) { 0.toByte() } + bytes
            }
            byteArrayOf(4) + numbers.flatten().toByteArray()
        }
    }

    override fun sign(alias: String, message: ByteArray): ByteArray? = understood {
        (store.getKey(alias, null) as? PrivateKey)?.let { key ->
            Signature.getInstance("SHA256withECDSA").run {
                initSign(key)
                update(message)
                sign()
            }
        }
    }

    override fun delete(alias: String) = understood { store.deleteEntry(alias) }

    /** Work of the keystore; what it throws says whether it may pass. */
    private inline fun <T> understood(work: () -> T): T =
        try {
            work()
        } catch (error: Exception) {
            throw KeyFailure(KeystoreErrors.kind(error), error)
        }
}
