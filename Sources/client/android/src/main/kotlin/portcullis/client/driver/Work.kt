package portcullis.client.driver

import java.util.ArrayDeque
import java.util.concurrent.CountDownLatch
import java.util.concurrent.ExecutorService
import java.util.concurrent.SynchronousQueue
import java.util.concurrent.ThreadPoolExecutor
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.withLock

/** Work that is done once for all who ask. Each waits for as long as it likes; the work goes on when no caller does. */
internal class Shared<T : Any> {
    private val latch = CountDownLatch(1)
    @Volatile private var value: T? = null

    val hasEnded: Boolean get() = latch.count == 0L

    @Synchronized
    fun end(value: T) {
        if (hasEnded) return
        this.value = value
        latch.countDown()
    }

    /** What it came to; `null` when it has not ended in time, or the thread was interrupted. */
    fun value(milliseconds: Long): T? {
        try {
            latch.await(maxOf(0, milliseconds), TimeUnit.MILLISECONDS)
        } catch (error: InterruptedException) {
            // The app gives its call up, and sees it as that call ends.
            Thread.currentThread().interrupt()
        }
        return value
    }
}

/** Threads of the client, which do not keep the app alive, and end when they have nothing to do. */
internal object Threads {
    private val count = AtomicInteger()

    val executor: ExecutorService = ThreadPoolExecutor(
        0, Int.MAX_VALUE, 5, TimeUnit.SECONDS, SynchronousQueue()
    ) { work -> Thread(work, "portcullis-" + count.incrementAndGet()).apply { isDaemon = true } }

    fun run(work: () -> Unit) = executor.execute { work() }
}

/** Calls that may hang: each on a thread of its own, a few at once. One that never ends keeps its place. */
internal class TimedCalls(private val atOnce: Int) {
    private val under = AtomicInteger()

    /** Begins a call; `null` where there is no place. */
    fun <T : Any> begin(work: () -> T): Shared<T>? {
        if (under.incrementAndGet() > atOnce) {
            under.decrementAndGet()
            return null
        }
        val shared = Shared<T>()
        Threads.run {
            try {
                shared.end(work())
            } finally {
                under.decrementAndGet()
            }
        }
        return shared
    }
}

/** Lets one assertion through at a time, in the order of asking. */
internal class Turnstile {
    class Turn {
        /** When it ends by itself, by [System.nanoTime]; `null` while the signature is made. */
        var end: Long? = null
    }

    private var current: Turn? = null
    private val waiting = ArrayDeque<Turn>()
    private val lock = ReentrantLock()
    private val changed = lock.newCondition()

    /** The turn, which [leave] ends; `null` when it has not come in time. */
    fun enter(milliseconds: Long): Turn? = lock.withLock {
        val me = Turn()
        val end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(minOf(milliseconds, DAY))
        waiting.addLast(me)
        try {
            while (true) {
                val now = System.nanoTime()
                val over = current?.end
                if (over != null && over <= now) current = null
                if (current == null && waiting.peekFirst() === me) {
                    current = me
                    return me
                }
                if (end <= now) return null
                changed.awaitNanos(minOf(end, current?.end ?: end) - now)
            }
        } catch (error: InterruptedException) {
            Thread.currentThread().interrupt()
        } finally {
            waiting.remove(me)
            changed.signalAll()
        }
        null
    }

    /** The turn is kept so much longer, and then ends by itself. */
    fun keep(turn: Turn, milliseconds: Long) = lock.withLock {
        turn.end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(milliseconds)
        changed.signalAll()
    }

    /** A turn that has ended already ends no other. */
    fun leave(turn: Turn) = lock.withLock {
        if (current === turn) current = null
        changed.signalAll()
    }

    private companion object {
        const val DAY = 86_400_000L
    }
}
