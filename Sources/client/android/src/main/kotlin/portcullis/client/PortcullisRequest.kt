package portcullis.client

import java.io.ByteArrayInputStream
import java.io.File
import java.io.FileInputStream
import java.io.IOException
import java.io.InputStream

/** A field of a request or an answer. */
class PortcullisField(@JvmField val name: String, @JvmField val value: String)

/**
 * The content of a request: a source that can be opened again, since it is hashed before it is sent, and sent again
 * where a refusal asks for that. It must say the same each time.
 */
abstract class PortcullisContent {
    /** In bytes. */
    abstract val length: Long

    @Throws(IOException::class)
    abstract fun open(): InputStream

    internal val isEmpty: Boolean get() = length == 0L

    companion object {
        @JvmField val NONE: PortcullisContent = of(ByteArray(0))

        @JvmStatic
        fun of(bytes: ByteArray): PortcullisContent = object : PortcullisContent() {
            override val length = bytes.size.toLong()
            override fun open() = ByteArrayInputStream(bytes)
        }

        /** A file, which must not change until the answer is there. */
        @JvmStatic
        fun of(file: File): PortcullisContent = object : PortcullisContent() {
            override val length = file.length()
            private val time = file.lastModified()

            override fun open(): InputStream {
                if (file.length() != length || file.lastModified() != time) {
                    throw IOException("the file with the content was changed after it was signed")
                }
                return FileInputStream(file)
            }
        }
    }
}

/** A request to the gateway. */
class PortcullisRequest private constructor(builder: Builder) {
    /** As in the request line. */
    @JvmField val method: String = builder.method
    /**
     * The target in origin-form, with its query, escaped as it is sent: `/v1/orders?dry=1`. Or a URL, of the gateway
     * or one of its further origins.
     */
    @JvmField val target: String = builder.target
    @JvmField val fields: List<PortcullisField> = ArrayList(builder.fields)
    @JvmField val content: PortcullisContent = builder.content
    /** The most that it waits for its proof, in milliseconds; 0 for no limit but [PortcullisLimits.proofWait]. */
    @JvmField val timeout: Long = builder.timeout
    /** What its rule signs, as far as the app knows. What the plan or an answer says counts before it. */
    @JvmField val requirement: SigningRequirement? = builder.requirement
    /** Whether it is never sent without a proof, not even to ask what its route signs. */
    @JvmField val requiresProof: Boolean = builder.requiresProof

    /** A request with content in memory. */
    @JvmOverloads
    constructor(
        method: String,
        target: String,
        fields: Map<String, String> = emptyMap(),
        body: ByteArray = ByteArray(0)
    ) : this(Builder(method, target).fields(fields).content(PortcullisContent.of(body)))

    class Builder(internal val method: String, internal val target: String) {
        internal val fields = ArrayList<PortcullisField>()
        internal var content = PortcullisContent.NONE
        internal var timeout = 0L
        internal var requirement: SigningRequirement? = null
        internal var requiresProof = false

        fun field(name: String, value: String) = apply { fields.add(PortcullisField(name, value)) }
        fun fields(all: Map<String, String>) = apply { for ((name, value) in all) field(name, value) }
        fun content(content: PortcullisContent) = apply { this.content = content }
        fun content(bytes: ByteArray) = apply { content = PortcullisContent.of(bytes) }
        fun content(file: File) = apply { content = PortcullisContent.of(file) }
        fun timeout(milliseconds: Long) = apply { timeout = milliseconds }
        fun requirement(requirement: SigningRequirement?) = apply { this.requirement = requirement }
        fun requiresProof(requires: Boolean) = apply { requiresProof = requires }
        fun build() = PortcullisRequest(this)
    }
}
