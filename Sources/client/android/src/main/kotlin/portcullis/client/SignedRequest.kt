package portcullis.client

import portcullis.client.driver.Draft
import portcullis.client.driver.GatewayCalls
import portcullis.client.driver.Proven
import portcullis.client.machine.RequestMachine
import java.net.URL

/**
 * A request that was signed for another HTTP stack. Send it soon, once, and as it stands: a challenge lives for
 * minutes, and the proof is good for one try. Then hand its answer to [PortcullisClient.signAgain] or [PortcullisClient.learn].
 */
class SignedRequest internal constructor(
    internal val draft: Draft,
    internal val proven: Proven,
    internal val machine: RequestMachine,
    /** How often it was signed, this time included. */
    @JvmField val attempts: Int
) {
    @JvmField val method: String = draft.method
    @JvmField val url: URL = GatewayCalls.url(draft.place)
    /** All of the app's fields, and the proof's. */
    @JvmField val fields: List<PortcullisField> = proven.fields
    @JvmField val content: PortcullisContent = draft.content
    /** What it carries. */
    @JvmField val proof: Proof = proven.proof
}
