package portcullis.client.machine

import portcullis.client.Hold

/** What the gateway gave for one enrolment: the challenge that is attested, what is bound to the key, until when. */
internal data class Grant(val challenge: String, val context: String?, val until: Long) {
    /** What the key is made for. */
    val data: ByteArray get() = enrolmentData(challenge, context?.let { bytesOfBase64(it) })
}

/**
 * What is kept about this install's key.
 *
 *     none → named(alias) → granted(alias, grant) → attested(alias, grant) → enrolled(alias, id)
 */
internal data class EnrolmentRecord(
    /** The endpoints of the gateway that has the key. */
    val gateway: String,
    val phase: Phase = Phase.None,
    val lease: Lease? = null,
    /** The highest number of the enrolled key that may have been given. */
    val numbers: Long = 0,
    /** Whether the enrolled key is bound to a context; `null` where there is none. */
    val hasContext: Boolean? = null,
    /** When keys were made in the last day, oldest first. */
    val attestations: List<Long> = emptyList(),
    /** The last key among them. The keystore may be asked for it several times. */
    val countedKey: String? = null,
    /** When keys were lost or refused in the last day. */
    val losses: List<Long> = emptyList(),
    /** How many tries failed since the last one that did not. */
    val failures: Int = 0,
    /** How often the keystore failed to make a key, in a way that lasts, since it made one. */
    val deviceFailures: Int = 0,
    val hold: Hold? = null
) {
    /** How far the key came. */
    sealed class Phase {
        object None : Phase()
        /** A name that was counted, and has no challenge that is good. */
        data class Named(val name: String) : Phase()
        /** The keystore may have been asked: the same name and the same challenge are tried again. */
        data class Granted(val name: String, val grant: Grant) : Phase()
        /** The keystore has the key. The gateway may have it. */
        data class Attested(val name: String, val grant: Grant) : Phase()
        /** The gateway has the key. */
        data class Enrolled(val name: String, val keyId: String) : Phase()

        /** The key's name in the keystore. */
        val alias: String?
            get() = when (this) {
                None -> null
                is Named -> name
                is Granted -> name
                is Attested -> name
                is Enrolled -> name
            }
    }

    /** Who enrols now, by a random text, and until when others wait. */
    data class Lease(val holder: String, val until: Long)

    val isDeviceBroken: Boolean get() = deviceFailures >= 2

    /** Whether the key is, or would be, bound to a context, as far as it is known. */
    val mayHaveContext: Boolean
        get() = when (phase) {
            Phase.None, is Phase.Named -> false
            is Phase.Granted -> phase.grant.context != null
            is Phase.Attested -> phase.grant.context != null
            is Phase.Enrolled -> hasContext ?: true
        }

    /** The record as lines of a file. */
    fun lines(): Map<String, String> {
        val lines = LinkedHashMap<String, String>()
        fun put(name: String, value: Any?) {
            if (value != null) lines[name] = value.toString()
        }
        put("gateway", gateway)
        put("alias", phase.alias)
        val grant = (phase as? Phase.Granted)?.grant ?: (phase as? Phase.Attested)?.grant
        put("challenge", grant?.challenge)
        put("context", grant?.context)
        put("challenge_until", grant?.until)
        put("attested", if (phase is Phase.Attested) 1 else null)
        put("key_id", (phase as? Phase.Enrolled)?.keyId)
        put("has_context", hasContext)
        put("counter", numbers)
        put("lease_holder", lease?.holder)
        put("lease_until", lease?.until)
        put("made", attestations.joinToString(" "))
        put("counted_key", countedKey)
        put("losses", losses.joinToString(" "))
        put("failures", failures)
        put("device_failures", deviceFailures)
        put("hold_cause", hold?.cause?.word)
        put("hold_detail", hold?.detail)
        put("held_until", hold?.until)
        return lines
    }

    companion object {
        /** The most times that are read. A day brings fewer. */
        private const val TIMES_MAX = 64
        private const val FAILURES_MAX = 1000

        /** Reads a record; one without a key where it is of another gateway. */
        fun of(lines: Map<String, String>, gateway: String): EnrolmentRecord {
            fun number(name: String) = lines[name]?.toLongOrNull()
            fun count(name: String) = minOf(maxOf(number(name) ?: 0, 0), FAILURES_MAX.toLong()).toInt()
            fun times(name: String) =
                (lines[name] ?: "").split(' ').mapNotNull { it.toLongOrNull() }.takeLast(TIMES_MAX)
            val holder = lines["lease_holder"]
            // What the keystore can't do, it can't do for any gateway, and keys are counted for the phone.
            val common = EnrolmentRecord(
                gateway, lease = holder?.let { Lease(it, number("lease_until") ?: 0) }, attestations = times("made"),
                countedKey = lines["counted_key"], deviceFailures = count("device_failures")
            )
            if (lines["gateway"] != gateway) return common
            val cause = Hold.Cause.values().firstOrNull { it.word == lines["hold_cause"] }
            val until = number("held_until")
            return common.copy(
                phase = phase(lines), numbers = maxOf(number("counter") ?: 0, 0),
                hasContext = lines["has_context"]?.let { it == "true" },
                losses = times("losses"), failures = count("failures"),
                hold = until?.let { Hold(cause ?: Hold.Cause.GATEWAY_UNAVAILABLE, it, lines["hold_detail"]) }
            )
        }

        private fun phase(lines: Map<String, String>): Phase {
            val alias = lines["alias"]
            if (alias.isNullOrEmpty()) return Phase.None
            lines["key_id"]?.let { if (it.isNotEmpty()) return Phase.Enrolled(alias, it) }
            val challenge = lines["challenge"] ?: return Phase.Named(alias)
            val until = lines["challenge_until"]?.toLongOrNull() ?: return Phase.Named(alias)
            val grant = Grant(challenge, lines["context"], until)
            return if ("attested" in lines) Phase.Attested(alias, grant) else Phase.Granted(alias, grant)
        }
    }
}
