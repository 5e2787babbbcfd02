package portcullis.client.driver

import portcullis.client.PortcullisLimits
import portcullis.client.PortcullisTokens
import portcullis.client.TokenOutcome
import portcullis.client.machine.base64url

/** Asks the app for tokens of Google Play: within a time, and a few at once. */
internal class TokenSource(
    private val tokens: PortcullisTokens?,
    private val say: (String) -> Unit
) {
    /** A token, or why there is none. */
    class Made(val outcome: TokenOutcome, val text: String? = null)

    private val calls = TimedCalls(PortcullisLimits.TOKENS_AT_ONCE)

    val canBeMade: Boolean get() = tokens != null

    /** A new token, bound to the hash of what the key signs or was made for. */
    fun made(hash: ByteArray, milliseconds: Long): Made {
        val tokens = tokens ?: return none(TokenOutcome.UNSUPPORTED)
        val work = calls.begin {
            try {
                val text = tokens.token(base64url(hash))
                Made(if (FORM.matches(text)) TokenOutcome.SENT else TokenOutcome.FAILED, text)
            } catch (error: Throwable) {
                Made(TokenOutcome.FAILED)
            }
        }
        val made = work?.value(milliseconds) ?: return none(TokenOutcome.LATE)
        return if (made.outcome == TokenOutcome.SENT) made else none(made.outcome)
    }

    private fun none(outcome: TokenOutcome): Made {
        say("no token of Google Play: " + outcome.word)
        return Made(outcome)
    }

    private companion object {
        /** What the gateway reads. */
        val FORM = Regex("[A-Za-z0-9._~+/=-]{1,8192}")
    }
}
