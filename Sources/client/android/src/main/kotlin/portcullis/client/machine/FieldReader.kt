package portcullis.client.machine

import portcullis.client.lowered

/** Reads parameters as fields have them: `name=token` or `name="text"`. */
internal class FieldReader(private val text: String) {
    private var place = 0

    val isAtEnd: Boolean get() = place >= text.length
    private val next: Char? get() = if (isAtEnd) null else text[place]

    fun skipSpace() {
        while (next == ' ' || next == '\t') place += 1
    }

    /** Whether this character is next; it is passed over then. */
    fun take(character: Char): Boolean {
        if (next != character) return false
        place += 1
        return true
    }

    /** A token (RFC 9110 §5.6.2); `null` when none is next. */
    fun token(): String? {
        val start = place
        while (true) {
            val character = next ?: break
            if (!isTokenCharacter(character)) break
            place += 1
        }
        return if (place == start) null else text.substring(start, place)
    }

    /** A quoted string (RFC 9110 §5.6.4) without quotes and escapes; `null` when none is next, or it does not end. */
    fun quoted(): String? {
        if (!take('"')) return null
        val found = StringBuilder()
        while (true) {
            val character = next ?: return null
            place += 1
            if (character == '"') return found.toString()
            if (character != '\\') {
                found.append(character)
            } else {
                found.append(next ?: return null)
                place += 1
            }
        }
    }

    /** `name=value`; passes over nothing when there is none. */
    fun parameter(): Pair<String, String>? {
        val start = place
        val name = token()
        if (name != null) {
            skipSpace()
            if (take('=')) {
                skipSpace()
                val value = if (next == '"') quoted() else token()
                if (value != null) return Pair(name.lowered(), value)
            }
        }
        place = start
        return null
    }

    /** Passes over everything before the next such character that is not in a quoted string. */
    fun skipTo(character: Char) {
        while (true) {
            val here = next ?: return
            if (here == character) return
            if (here == '"' && quoted() != null) continue
            place += 1
        }
    }

    companion object {
        /** The longest field that is read. One of the gateway is far shorter. */
        const val LENGTH_MAX = 8 * 1024

        private fun isTokenCharacter(character: Char): Boolean =
            character in 'a'..'z' || character in 'A'..'Z' || character in '0'..'9' || character in "!#$%&'*+-.^_`|~"

        fun isToken(text: String): Boolean {
            val reader = FieldReader(text)
            return text.length <= 128 && reader.token() != null && reader.isAtEnd
        }
    }
}

/**
 * A field that is one token with parameters (RFC 8941 §3.3): `sign-again;sign="method target";counter=64`. What can't
 * be read is passed over: newer gateways may write more.
 */
internal class FieldItem private constructor(val word: String, private val parameters: Map<String, String>) {
    operator fun get(name: String): String? = parameters[name]

    companion object {
        fun of(text: String?): FieldItem? {
            if (text == null || text.length > FieldReader.LENGTH_MAX) return null
            val reader = FieldReader(text)
            reader.skipSpace()
            val word = reader.token() ?: return null
            val parameters = HashMap<String, String>()
            while (true) {
                reader.skipSpace()
                if (!reader.take(';')) return FieldItem(word, parameters)
                reader.skipSpace()
                val found = reader.parameter()
                if (found == null) reader.skipTo(';') else parameters[found.first] = found.second
            }
        }
    }
}

/** The parameters of the scheme `AppAttest` in a `WWW-Authenticate` field, among those of others; `null` for none. */
internal fun appAttestParameters(text: String?): Map<String, String>? {
    if (text == null || text.length > FieldReader.LENGTH_MAX) return null
    val reader = FieldReader(text)
    var found: HashMap<String, String>? = null
    // A scheme begins an element of the list; a word elsewhere is none.
    var beginsElement = true
    while (!reader.isAtEnd) {
        reader.skipSpace()
        if (reader.take(',')) {
            beginsElement = true
            continue
        }
        val scheme = reader.token() ?: break
        reader.skipSpace()
        val isOurs = beginsElement && scheme.lowered() == "appattest" && found == null
        beginsElement = false
        val ours = if (isOurs) HashMap<String, String>().also { found = it } else null
        // A scheme has parameters, or one text of 68 characters that never begins one.
        while (true) {
            reader.skipSpace()
            while (reader.take(',')) {
                beginsElement = true
                reader.skipSpace()
            }
            val parameter = reader.parameter() ?: break
            beginsElement = false
            if (ours != null && parameter.first !in ours) ours[parameter.first] = parameter.second
        }
        while (reader.take('=') || reader.take('/')) Unit
    }
    return found
}
