package portcullis.client

import java.io.File
import java.io.IOException
import java.net.URL

/** The time, and waits that are long. Both can be another's in tests. */
interface PortcullisClock {
    /** In milliseconds since 1970. */
    fun now(): Long

    @Throws(InterruptedException::class)
    fun sleep(milliseconds: Long)

    companion object {
        @JvmField val SYSTEM: PortcullisClock = object : PortcullisClock {
            override fun now() = System.currentTimeMillis()
            override fun sleep(milliseconds: Long) = Thread.sleep(milliseconds)
        }
    }
}

/** Hears what happened, in words that have no secrets in them. It is called where it happens, and must return soon. */
interface PortcullisLog {
    fun say(words: String)
}

/** Asks Google Play for a token of a standard request. */
interface PortcullisTokens {
    /** The token for a `requestHash`. Called on a thread of its own, and only where one is asked for. */
    @Throws(Exception::class)
    fun token(requestHash: String): String
}

/** What carries requests. */
interface PortcullisTransport {
    /**
     * Sends a request, with these fields: they are signed, so that none may be changed. It follows no redirect, and
     * sends nothing twice by itself.
     *
     * @param readWait how long a byte of the answer may take, in milliseconds.
     */
    @Throws(IOException::class)
    fun exchange(
        method: String, url: URL, fields: List<PortcullisField>, content: PortcullisContent, readWait: Long
    ): TransportAnswer
}

/** The head of an answer, and its content, to be read once and closed. */
class TransportAnswer(
    status: Int, fields: List<PortcullisField>, @JvmField val stream: java.io.InputStream
) : PortcullisResponse(status, fields)

/** What a client is made from. The builder has what can be left out. */
class PortcullisConfiguration private constructor(builder: Builder) {
    internal val gateway: String = builder.gateway
    internal val endpoints: String = builder.endpoints
    internal val origins: List<String> = ArrayList(builder.origins)
    internal val packageName: String = builder.packageName
    internal val record: File = builder.record
    internal val routes: File? = builder.routes
    internal val keys: PortcullisKeys = builder.keys
    internal val context: ByteArray? = builder.context
    internal val tokens: PortcullisTokens? = builder.tokens
    internal val enrolsWithToken: Boolean = builder.enrolsWithToken
    internal val usesSessions: Boolean = builder.usesSessions
    internal val plan: SigningPlan? = builder.plan
    internal val fetchesPlan: Boolean = builder.fetchesPlan
    internal val defaultRequirement: SigningRequirement? = builder.defaultRequirement
    internal val limits: PortcullisLimits = builder.limits
    internal val transport: PortcullisTransport? = builder.transport
    internal val clock: PortcullisClock = builder.clock
    internal val log: PortcullisLog? = builder.log

    /**
     * @param gateway as `https://api.example.com`.
     * @param packageName the app's, which stands in what the key signs.
     * @param record a file of the client's own, in a folder that is not backed up.
     * @param keys the phone's: `AndroidKeys`.
     */
    class Builder(
        internal val gateway: String,
        internal val packageName: String,
        internal val record: File,
        internal val keys: PortcullisKeys
    ) {
        internal var endpoints = "/.well-known/app-attest"
        internal val origins = ArrayList<String>()
        internal var routes: File? = File(record.path + ".routes")
        internal var context: ByteArray? = null
        internal var tokens: PortcullisTokens? = null
        internal var enrolsWithToken = false
        internal var usesSessions = true
        internal var plan: SigningPlan? = null
        internal var fetchesPlan = false
        internal var defaultRequirement: SigningRequirement? = null
        internal var limits = PortcullisLimits()
        internal var transport: PortcullisTransport? = null
        internal var clock = PortcullisClock.SYSTEM
        internal var log: PortcullisLog? = null

        /** Where the gateway's endpoints are, if not below `/.well-known/app-attest`. */
        fun endpoints(path: String) = apply { endpoints = path }

        /** A further origin of the same gateway. A proof is sent nowhere else. */
        fun origin(url: String) = apply { origins.add(url) }

        /** Where the plan and what was learned of routes is kept when the process ends; `null` for nowhere. */
        fun routes(file: File?) = apply { routes = file }

        /** What the gateway keeps with the key and gives to its origins: 1 to 256 bytes. */
        fun context(bytes: ByteArray?) = apply { context = bytes }

        fun tokens(tokens: PortcullisTokens?) = apply { this.tokens = tokens }

        /** The same for Kotlin. */
        @JvmSynthetic
        fun tokens(token: (String) -> String) = tokens(object : PortcullisTokens {
            override fun token(requestHash: String) = token(requestHash)
        })

        /** Whether an enrolment brings a token of Google Play unasked: for an app entry whose `integrity` marks. */
        fun enrolsWithToken(enrols: Boolean) = apply { enrolsWithToken = enrols }

        /** Whether sessions are opened for routes that take them: over TLS, or to this machine. */
        fun usesSessions(uses: Boolean) = apply { usesSessions = uses }

        /** What routes ask, as `portcullis plan` wrote it. */
        fun plan(plan: SigningPlan?) = apply { this.plan = plan }

        /** Whether the plan is fetched from the gateway, whose configuration must say `plan: on`. */
        fun fetchesPlan(fetches: Boolean) = apply { fetchesPlan = fetches }

        /** What is signed where neither the plan nor an answer says so; `null` to ask first. */
        fun defaultRequirement(requirement: SigningRequirement?) = apply { defaultRequirement = requirement }

        fun limits(limits: PortcullisLimits) = apply { this.limits = limits }
        fun transport(transport: PortcullisTransport) = apply { this.transport = transport }
        fun clock(clock: PortcullisClock) = apply { this.clock = clock }
        fun log(log: PortcullisLog?) = apply { this.log = log }
        /** The same for Kotlin. */
        @JvmSynthetic
        fun log(say: (String) -> Unit) = log(object : PortcullisLog {
            override fun say(words: String) = say(words)
        })

        /** @throws IllegalArgumentException where a URL is none of HTTP. */
        fun build() = PortcullisConfiguration(this)
    }
}
