package portcullis.client.machine

/**
 * JSON (RFC 8259) as maps, lists, texts, numbers, booleans and `null`. Android's own parser is not on the Java machine.
 */
internal object Json {
    private const val DEPTH_MAX = 32

    /** Why a text is none. */
    class Malformed(place: Int) : Exception("the JSON can't be read at character " + place)

    /** `null` for a text that is no JSON. */
    fun objectOf(text: String): Map<*, *>? =
        try {
            Reader(text).whole() as? Map<*, *>
        } catch (error: Malformed) {
            null
        }

    private class Reader(private val text: String) {
        private var place = 0

        fun whole(): Any? {
            val value = value(0)
            skipSpace()
            if (place != text.length) throw Malformed(place)
            return value
        }

        private fun skipSpace() {
            while (place < text.length && text[place] in " \t\r\n") place += 1
        }

        private fun next(): Char = if (place < text.length) text[place] else throw Malformed(place)

        private fun take(character: Char) {
            if (next() != character) throw Malformed(place)
            place += 1
        }

        private fun value(depth: Int): Any? {
            if (depth > DEPTH_MAX) throw Malformed(place)
            skipSpace()
            return when (next()) {
                '{' -> members(depth)
                '[' -> elements(depth)
                '"' -> text()
                't' -> word("true", true)
                'f' -> word("false", false)
                'n' -> word("null", null)
                else -> number()
            }
        }

        private fun word(word: String, value: Any?): Any? {
            if (!text.startsWith(word, place)) throw Malformed(place)
            place += word.length
            return value
        }

        private fun members(depth: Int): Map<String, Any?> {
            val members = LinkedHashMap<String, Any?>()
            take('{')
            skipSpace()
            if (next() != '}') {
                while (true) {
                    skipSpace()
                    val name = text()
                    skipSpace()
                    take(':')
                    members[name] = value(depth + 1)
                    skipSpace()
                    if (next() == '}') break
                    take(',')
                }
            }
            take('}')
            return members
        }

        private fun elements(depth: Int): List<Any?> {
            val elements = ArrayList<Any?>()
            take('[')
            skipSpace()
            if (next() != ']') {
                while (true) {
                    elements.add(value(depth + 1))
                    skipSpace()
                    if (next() == ']') break
                    take(',')
                }
            }
            take(']')
            return elements
        }

        private fun text(): String {
            take('"')
            val found = StringBuilder()
            while (true) {
                val character = next()
                place += 1
                when {
                    character == '"' -> return found.toString()
                    character < ' ' -> throw Malformed(place)
                    character == '\\' -> found.append(escaped())
                    else -> found.append(character)
                }
            }
        }

        private fun escaped(): Char {
            val character = next()
            place += 1
            return when (character) {
                '"', '\\', '/' -> character
                'b' -> '\b'
                'f' -> '\u000C'
                'n' -> '\n'
                'r' -> '\r'
                't' -> '\t'
                'u' -> {
                    val digits = if (place + 4 <= text.length) text.substring(place, place + 4) else ""
                    place += 4
                    (digits.toIntOrNull(16) ?: throw Malformed(place)).toChar()
                }
                else -> throw Malformed(place)
            }
        }

        private fun number(): Double {
            val start = place
            while (place < text.length && (text[place] in '0'..'9' || text[place] in "+-.eE")) place += 1
            return text.substring(start, place).toDoubleOrNull() ?: throw Malformed(start)
        }
    }

    /** The text of a value of these kinds. */
    fun text(value: Any?): String = StringBuilder().also { write(value, it) }.toString()

    private fun write(value: Any?, out: StringBuilder) {
        when (value) {
            is Map<*, *> -> {
                var mark = '{'
                for ((name, member) in value) {
                    out.append(mark)
                    write(name.toString(), out)
                    out.append(':')
                    write(member, out)
                    mark = ','
                }
                out.append(if (mark == '{') "{}" else "}")
            }
            is List<*> -> {
                out.append('[')
                for ((place, element) in value.withIndex()) {
                    if (place > 0) out.append(',')
                    write(element, out)
                }
                out.append(']')
            }
            is String -> quote(value, out)
            else -> out.append(value.toString())
        }
    }

    private fun quote(text: String, out: StringBuilder) {
        out.append('"')
        for (character in text) {
            when {
                character == '"' || character == '\\' -> out.append('\\').append(character)
                character < ' ' -> out.append("\\u").append("%04x".format(character - '\u0000'))
                else -> out.append(character)
            }
        }
        out.append('"')
    }
}

internal fun Map<*, *>.text(name: String): String? = this[name] as? String

internal fun Map<*, *>.number(name: String): Double? = this[name] as? Double

/** The texts of a list; `null` where it is none. */
internal fun Map<*, *>.texts(name: String): List<String>? {
    val list = this[name] as? List<*> ?: return null
    return if (list.all { it is String }) list.map { it as String } else null
}
