// Android's interfaces as far as the client uses them, and a keystore in software that stands in their place.
// An authority of the tests attests its keys, so that no certificate is made here.
@file:Suppress("unused")

package android.security.keystore

import java.io.ByteArrayInputStream
import java.io.File
import java.io.InputStream
import java.io.OutputStream
import java.net.HttpURLConnection
import java.net.URL
import java.security.InvalidKeyException
import java.security.KeyFactory
import java.security.KeyPair
import java.security.KeyPairGenerator
import java.security.KeyPairGeneratorSpi
import java.security.KeyStoreSpi
import java.security.Key
import java.security.PrivateKey
import java.security.Provider
import java.security.ProviderException
import java.security.SecureRandom
import java.security.UnrecoverableKeyException
import java.security.cert.Certificate
import java.security.cert.CertificateFactory
import java.security.interfaces.ECPublicKey
import java.security.spec.AlgorithmParameterSpec
import java.security.spec.ECGenParameterSpec
import java.security.spec.PKCS8EncodedKeySpec
import java.util.Base64
import java.util.Collections
import java.util.Date
import java.util.Enumeration
import java.util.concurrent.ConcurrentHashMap

object KeyProperties {
    const val PURPOSE_SIGN = 4
    const val DIGEST_SHA256 = "SHA-256"
    const val KEY_ALGORITHM_EC = "EC"
}

class StrongBoxUnavailableException : ProviderException("no StrongBox")

class KeyPermanentlyInvalidatedException : InvalidKeyException("the screen lock was changed")

class UserNotAuthenticatedException : InvalidKeyException("the user has to unlock the phone")

class KeyGenParameterSpec private constructor(
    val alias: String, val curve: String, val challenge: ByteArray, val isStrongBox: Boolean
) : AlgorithmParameterSpec {
    class Builder(private val alias: String, private val purposes: Int) {
        private var curve = ""
        private var digests = emptyList<String>()
        private var challenge = ByteArray(0)
        private var isStrongBox = false

        fun setAlgorithmParameterSpec(spec: AlgorithmParameterSpec) = apply { curve = (spec as ECGenParameterSpec).name }
        fun setDigests(vararg names: String) = apply { digests = names.toList() }
        fun setAttestationChallenge(bytes: ByteArray) = apply { challenge = bytes }
        fun setIsStrongBoxBacked(isOne: Boolean) = apply { isStrongBox = isOne }

        fun build(): KeyGenParameterSpec {
            check(purposes == KeyProperties.PURPOSE_SIGN && digests == listOf(KeyProperties.DIGEST_SHA256))
            return KeyGenParameterSpec(alias, curve, challenge, isStrongBox)
        }
    }
}

/** The phone that the tests have in the hand. */
object Phone {
    class Entry(val key: PrivateKey, val chain: Array<Certificate>)

    val entries = ConcurrentHashMap<String, Entry>()
    /** Where keys are that several processes share, and that outlive them; `null` for nowhere. */
    @Volatile var folder: File? = null
    /** Keys that are there and can't be used. */
    val spoiled = Collections.synchronizedSet(HashSet<String>())
    /**
     * Where `attest` takes `POINT CHALLENGE LEVEL` and answers the chain, a certificate a line, and where `token` takes
     * `REQUEST-HASH KIND` and answers a token of Google Play.
     */
    @Volatile var authority = ""
    @Volatile var hasStrongBox = true
    @Volatile var isBroken = false
    /** What the keystore throws instead of doing anything. */
    @Volatile var fault: (() -> Exception)? = null
    /** Whether it takes a second to fail. */
    @Volatile var isSlow = false
    /** What keys were made, by level. */
    val made = Collections.synchronizedList(ArrayList<String>())

    fun entry(alias: String): Entry? = entries[alias] ?: folder?.let { read(File(it, alias)) }

    private fun read(file: File): Entry? {
        if (!file.exists()) return null
        val parts = file.readLines().map { Base64.getDecoder().decode(it) }
        val key = KeyFactory.getInstance("EC").generatePrivate(PKCS8EncodedKeySpec(parts[0]))
        return Entry(key, parts.drop(1).map { certificate(it) }.toTypedArray())
    }

    fun keep(alias: String, entry: Entry) {
        entries[alias] = entry
        val lines = listOf(entry.key.encoded) + entry.chain.map { it.encoded }
        folder?.let { File(it, alias).writeText(lines.joinToString("\n") { Base64.getEncoder().encodeToString(it) }) }
    }

    fun delete(alias: String) {
        entries.remove(alias)
        folder?.let { File(it, alias).delete() }
    }

    private fun certificate(bytes: ByteArray): Certificate =
        CertificateFactory.getInstance("X.509").generateCertificate(ByteArrayInputStream(bytes))

    /** Asks the authority. */
    fun ask(what: String, text: String): String {
        val connection = URL(authority + what).openConnection() as HttpURLConnection
        connection.doOutput = true
        connection.outputStream.use { it.write(text.toByteArray()) }
        return connection.inputStream.use { it.readBytes() }.toString(Charsets.US_ASCII).trim()
    }

    fun attest(point: ByteArray, spec: KeyGenParameterSpec): Array<Certificate> {
        val level = if (spec.isStrongBox) "strongbox" else "tee"
        val encoder = Base64.getEncoder()
        val words = listOf(encoder.encodeToString(point), encoder.encodeToString(spec.challenge), level)
        val lines = ask("attest", words.joinToString(" ")).lines()
        made.add(level)
        return lines.map { certificate(Base64.getDecoder().decode(it)) }.toTypedArray()
    }
}

class SoftwareKeyPairGenerator : KeyPairGeneratorSpi() {
    private lateinit var spec: KeyGenParameterSpec

    override fun initialize(keysize: Int, random: SecureRandom?) = throw UnsupportedOperationException()

    override fun initialize(params: AlgorithmParameterSpec, random: SecureRandom?) {
        spec = params as KeyGenParameterSpec
    }

    override fun generateKeyPair(): KeyPair {
        if (spec.isStrongBox && !Phone.hasStrongBox) throw StrongBoxUnavailableException()
        if (Phone.isSlow) Thread.sleep(1000)
        Phone.fault?.let { throw it() }
        if (Phone.isBroken) throw ProviderException("the keystore fails")
        val generator = KeyPairGenerator.getInstance("EC")
        generator.initialize(ECGenParameterSpec(spec.curve))
        val pair = generator.generateKeyPair()
        val point = (pair.public as ECPublicKey).encoded.takeLast(65).toByteArray()
        Phone.keep(spec.alias, Phone.Entry(pair.private, Phone.attest(point, spec)))
        return pair
    }
}

class SoftwareKeyStore : KeyStoreSpi() {
    override fun engineLoad(stream: InputStream?, password: CharArray?) {}
    override fun engineGetKey(alias: String, password: CharArray?): Key? {
        Phone.fault?.let { throw it() }
        if (alias in Phone.spoiled) throw UnrecoverableKeyException("invalid key blob")
        return Phone.entry(alias)?.key
    }

    override fun engineGetCertificateChain(alias: String): Array<Certificate>? {
        Phone.fault?.let { throw it() }
        return Phone.entry(alias)?.chain
    }

    override fun engineGetCertificate(alias: String): Certificate? = Phone.entry(alias)?.chain?.get(0)
    override fun engineDeleteEntry(alias: String) = Phone.delete(alias)
    override fun engineContainsAlias(alias: String) = Phone.entry(alias) != null
    override fun engineAliases(): Enumeration<String> = Collections.enumeration(Phone.entries.keys)
    override fun engineSize() = Phone.entries.size
    override fun engineIsKeyEntry(alias: String) = Phone.entry(alias) != null
    override fun engineIsCertificateEntry(alias: String) = false
    override fun engineGetCertificateAlias(certificate: Certificate?): String? = null
    override fun engineGetCreationDate(alias: String): Date? = null
    override fun engineStore(stream: OutputStream?, password: CharArray?) = throw UnsupportedOperationException()
    override fun engineSetKeyEntry(alias: String, key: Key?, password: CharArray?, chain: Array<Certificate>?) =
        throw UnsupportedOperationException()
    override fun engineSetKeyEntry(alias: String, key: ByteArray?, chain: Array<Certificate>?) =
        throw UnsupportedOperationException()
    override fun engineSetCertificateEntry(alias: String, certificate: Certificate?) =
        throw UnsupportedOperationException()
}

@Suppress("DEPRECATION")
class SoftwareKeystoreProvider : Provider("AndroidKeyStore", 1.0, "a keystore in software") {
    init {
        put("KeyPairGenerator.EC", SoftwareKeyPairGenerator::class.java.name)
        put("KeyStore.AndroidKeyStore", SoftwareKeyStore::class.java.name)
    }
}
