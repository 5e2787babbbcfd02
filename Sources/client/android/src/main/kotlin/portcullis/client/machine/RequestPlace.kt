package portcullis.client.machine

import java.net.InetAddress
import portcullis.client.lowered

/** Where a request goes: what is in its URL, as it is sent. */
internal class RequestPlace private constructor(
    /** `http` or `https`. */
    val scheme: String,
    /** In lower case; an address of IPv6 in brackets. */
    val host: String,
    /** -1 for the scheme's own. */
    val port: Int,
    /** Path and query, as in the request line. */
    val target: String
) {
    /** Who a URL belongs to. */
    val origin: String get() = scheme + "://" + host + ":" + usedPort
    private val usedPort: Int get() = if (port == -1) (if (scheme == "https") 443 else 80) else port

    /** As `Host` has it: with the port where it is not the scheme's own. */
    val authority: String
        get() = if (usedPort == (if (scheme == "https") 443 else 80)) host else host + ":" + usedPort

    /** Whether a secret may be asked for there: because of TLS, or because it does not leave this machine. */
    val keepsSecrets: Boolean get() = scheme == "https" || THIS_MACHINE.matches(host)

    /** The path's segments, percent-decoded once, a character for each byte; none for `/`. */
    val segments: List<String> by lazy { parts(target.substringBefore('?')).map { decoded(it) } }

    /** The host as plans and routes compare it. */
    val comparedHost: String by lazy { comparedHost(host) }

    /** The same server with another target. */
    fun at(target: String) = RequestPlace(scheme, host, port, target)

    /** Where a `Location` leads; `null` where it leads nowhere. */
    fun resolved(location: String): RequestPlace? {
        val text = location.substringBefore('#')
        return when {
            text.contains("://") && !text.startsWith("/") -> of(text)
            text.startsWith("//") -> of(scheme + ":" + text)
            text.startsWith("/") -> if (isTarget(text)) at(withoutDots(text)) else null
            text.startsWith("?") -> (target.substringBefore('?') + text).let { if (isTarget(it)) at(it) else null }
            else -> {
                val folder = target.substringBefore('?').substringBeforeLast('/') + "/"
                val whole = if (text == "") target else folder + text
                if (isTarget(whole)) at(withoutDots(whole)) else null
            }
        }
    }

    companion object {
        private val THIS_MACHINE = Regex("(?:.*\\.)?localhost|\\[::1]|127(?:\\.[0-9]{1,3}){3}")
        private val URL_FORM = Regex("([A-Za-z]+)://([^/?#@\\s]+?)(?::([0-9]{1,5}))?(/[^#]*|\\?[^#]*)?(?:#.*)?")

        /** `null` for what is no URL of HTTP. */
        fun of(url: String): RequestPlace? {
            val parts = URL_FORM.matchEntire(url)?.groupValues ?: return null
            val scheme = parts[1].lowered()
            if (scheme != "http" && scheme != "https") return null
            val port = if (parts[3] == "") -1 else parts[3].toInt()
            if (port > 65_535) return null
            val target = if (parts[4].startsWith("/")) parts[4] else "/" + parts[4]
            if (!isTarget(target)) return null
            return RequestPlace(scheme, parts[2].lowered(), port, target)
        }

        /** Whether a text can stand in a request line. */
        fun isTarget(text: String): Boolean = text.startsWith("/") && text.all { it in '!'..'~' && it != '#' }

        /** A target whose path has no segments `.` and `..` (RFC 3986 §5.2.4). */
        private fun withoutDots(target: String): String {
            val path = target.substringBefore('?')
            val kept = ArrayList<String>()
            val all = path.substring(1).split('/')
            for ((place, segment) in all.withIndex()) {
                if (segment != "." && segment != "..") {
                    kept.add(segment)
                    continue
                }
                if (segment == ".." && kept.isNotEmpty()) kept.removeAt(kept.size - 1)
                if (place == all.size - 1) kept.add("")
            }
            return "/" + kept.joinToString("/") + target.substring(path.length)
        }

        /** What stands between slashes, the first one apart; nothing for `/`. */
        fun parts(path: String): List<String> {
            val rest = if (path.startsWith("/")) path.substring(1) else path
            return if (rest == "") emptyList() else rest.split('/')
        }

        /** Percent-decoded once, a character for each byte. An escape that is none stays as it is. */
        fun decoded(text: String): String {
            val found = StringBuilder()
            var index = 0
            while (index < text.length) {
                val isEscape = text[index] == '%' && index + 2 < text.length
                val high = if (isEscape) Character.digit(text[index + 1], 16) else -1
                val low = if (high >= 0) Character.digit(text[index + 2], 16) else -1
                if (low >= 0) {
                    found.append((high * 16 + low).toChar())
                    index += 3
                } else {
                    found.append(text[index])
                    index += 1
                }
            }
            return found.toString()
        }

        /** A host in the one spelling that is compared. A pattern with a `*` stays as it is. */
        fun comparedHost(text: String): String {
            val host = text.lowered()
            if (!host.startsWith("[")) {
                return host.substringBeforeLast(':').let { if (it.length > 1) it.removeSuffix(".") else it }
            }
            val address = host.substring(1).substringBefore(']')
            if (address.any { it !in '0'..'9' && it !in 'a'..'f' && it != ':' && it != '.' }) return "[" + address + "]"
            return try {
                // An address is not looked up.
                "[" + InetAddress.getByName("[" + address + "]").hostAddress + "]"
            } catch (error: java.net.UnknownHostException) {
                "[" + address + "]"
            }
        }
    }
}
