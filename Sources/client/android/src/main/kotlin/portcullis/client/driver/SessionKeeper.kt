package portcullis.client.driver

import portcullis.client.PortcullisClock
import portcullis.client.machine.Opening
import portcullis.client.machine.SessionMachine
import portcullis.client.machine.Ticket

/** Keeps the one session: opened when it is asked for, once for all who ask, and the next one before it ends. */
internal class SessionKeeper(private val clock: PortcullisClock, private val say: (String) -> Unit) {
    /** What came of opening one. */
    sealed class Opened {
        class Session(val opening: Opening) : Opened()
        class Failed(val retryAfter: Long?, val mayPass: Boolean) : Opened()
    }

    private val machine = SessionMachine()
    private var opening: Shared<Boolean>? = null

    /** The next place in a session of the key; `null` when there is none in time. */
    fun ticket(keyId: String, milliseconds: Long, opener: () -> Opened): Ticket? {
        val work = synchronized(this) {
            val now = clock.now()
            if (machine.isOpen(keyId, now)) {
                if (machine.isDueForRenewal(now)) begin(opener)
                return machine.place()
            }
            begin(opener) ?: return null
        }
        if (work.value(milliseconds) != true) return null
        // To open it may have taken another key.
        return synchronized(this) { machine.place() }
    }

    private fun begin(opener: () -> Opened): Shared<Boolean>? {
        opening?.let { return it }
        if (!machine.mayOpen(clock.now())) return null
        val work = Shared<Boolean>()
        opening = work
        Threads.run {
            val opened = try {
                opener()
            } catch (error: RuntimeException) {
                Opened.Failed(null, true)
            }
            // A reset has ended it.
            val isOpen = synchronized(this) { if (opening === work) took(opened) else false }
            work.end(isOpen)
        }
        return work
    }

    private fun took(opened: Opened): Boolean {
        opening = null
        return when (opened) {
            is Opened.Session -> machine.opened(opened.opening, clock.now()).also { if (it) say("session opened") }
            is Opened.Failed -> {
                machine.failed(opened.retryAfter, opened.mayPass, clock.now())
                false
            }
        }
    }

    /** The answer to a request has come. */
    @Synchronized
    fun ended(ticket: Ticket) = machine.ended(ticket)

    @Synchronized
    fun forget(id: String) = machine.forget(id)

    @Synchronized
    fun forgetKey(keyId: String) = machine.forgetKey(keyId)

    /** Forgets the session. One that is being opened is not used. */
    @Synchronized
    fun reset() {
        machine.reset()
        opening?.end(false)
        opening = null
    }
}
