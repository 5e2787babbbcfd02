package portcullis.client.driver

import java.io.File
import portcullis.client.PortcullisClock
import portcullis.client.PortcullisField
import portcullis.client.PortcullisLimits
import portcullis.client.PortcullisResponse
import portcullis.client.SigningPlan
import portcullis.client.lowered
import portcullis.client.machine.AnswerFacts
import portcullis.client.machine.PlanUnfit
import portcullis.client.machine.RouteTable

/**
 * Fetches the plan beside requests, and keeps it in a file with what was learned of routes. No request fails because of
 * it. One to a route of which nothing is known waits for the first fetch, counted from the fetch's beginning.
 */
internal class PlanSource(
    private val calls: GatewayCalls,
    private val routes: RouteTable,
    private val limits: PortcullisLimits,
    private val clock: PortcullisClock,
    file: File?,
    private val fetches: Boolean,
    private val say: (String) -> Unit
) {
    /** A plan of the gateway's. */
    class Held(
        val json: String,
        /** Its entity tag. */
        val tag: String?,
        /** When the gateway has written it, by the gateway's clock. */
        val served: Long?,
        /** When it came or was confirmed. */
        val time: Long
    )

    private val file = file?.let { RouteFile(it, calls.place("").let { it.origin + it.target }, limits.planBytes) }
    private var held: Held? = null
    private var hasLoaded = false
    private var fetching: Pair<Shared<Unit>, Long>? = null
    private var holdUntil = 0L
    private var failures = 0
    private var isSaving = false
    private var needsSaving = false
    private var lastSaved = 0L
    private var isClosed = false

    /** Reads the file, and fetches the plan where it is time for that. */
    fun prepare(milliseconds: Long, isKnown: () -> Boolean) {
        val fetch = synchronized(this) {
            if (!hasLoaded) load()
            fetch()
        }
        if (fetch == null || isKnown()) return
        val passed = (System.nanoTime() - fetch.second) / 1_000_000
        fetch.first.value(minOf(milliseconds, limits.planWait - passed))
    }

    /** What an answer taught is something else than the plan says: another plan may be there. */
    @Synchronized
    fun doubt() {
        save()
        val soon = clock.now() + PortcullisLimits.PLAN_DOUBT_AGE
        if (failures == 0 && holdUntil > soon) holdUntil = soon
    }

    /** Asks no more. */
    @Synchronized
    fun close() {
        isClosed = true
    }

    // The gateway.

    private fun fetch(): Pair<Shared<Unit>, Long>? {
        if (!fetches || isClosed) return null
        fetching?.let { return it }
        val now = clock.now()
        // A hold that ends later than any was made before the clock was set back.
        if (holdUntil > now && holdUntil - now <= HOLD_MAX) return null
        val begun = Pair(Shared<Unit>(), System.nanoTime())
        fetching = begun
        // Answers that come while it is fetched are newer.
        val order = routes.nextOrder()
        val tag = held?.tag
        Threads.run {
            val fields = arrayListOf(PortcullisField("Accept", "application/json"))
            if (tag != null) fields.add(PortcullisField("If-None-Match", tag))
            val answer = calls.answer("GET", calls.place("plan"), fields, "", limits.planBytes)
            synchronized(this) {
                fetching = null
                fetched(answer, tag != null, order)
            }
            begun.first.end(Unit)
        }
        return begun
    }

    private fun fetched(answer: GatewayCalls.Answer?, hadTag: Boolean, order: Long) {
        val now = clock.now()
        val status = answer?.head?.status
        if (answer != null && status == 200) {
            failures = 0
            adopt(answer, order, now)
        } else if (answer != null && status == 304 && hadTag) {
            failures = 0
            held = held?.let { Held(it.json, it.tag, it.served, now) }
            save()
            if (cachedFor(answer.head) == 0L) routes.confirmPlan(order)
            holdUntil = now + age(answer.head)
        } else {
            failures = minOf(failures + 1, 16)
            val delay = minOf(
                PortcullisLimits.PLAN_FAILURE_HOLD shl (failures - 1), PortcullisLimits.PLAN_FAILURE_HOLD_MAX
            )
            val told = answer?.let { AnswerFacts.retryAfter(it.head, now) } ?: 0
            holdUntil = now + minOf(maxOf(delay, told), HOLD_MAX)
            say("no plan for " + (holdUntil - now) / 1000 + " s")
        }
    }

    private fun adopt(answer: GatewayCalls.Answer, order: Long, now: Long) {
        holdUntil = now + age(answer.head)
        val served = AnswerFacts.httpDate(answer.head.field("Date"))
        // A cache, or a gateway of a fleet, that has an older one. A date that is far ahead would keep all others away.
        val newest = held?.served
        if (served != null && newest != null && served < newest && newest - now < AHEAD_MAX) return
        val json = String(answer.content, Charsets.UTF_8)
        val plan = try {
            SigningPlan.read(json)
        } catch (error: PlanUnfit) {
            holdUntil = now + PortcullisLimits.PLAN_USUAL_AGE
            return say("what came as the plan is none: " + error.message)
        }
        held = Held(json, answer.head.field("ETag")?.takeIf { isFit(it) }, served, now)
        // One out of a cache is older than what answers said.
        routes.adopt(plan, if (cachedFor(answer.head) > 0) 0 else order)
        say("plan fetched")
        save()
    }

    /** Whether a tag can go into a field. */
    private fun isFit(tag: String) = tag.length <= 256 && tag.all { it in '!'..'~' }

    /** How long a cache has had it (RFC 9111 §5.1). */
    private fun cachedFor(head: PortcullisResponse): Long =
        (head.field("Age")?.trim()?.toLongOrNull() ?: 0).coerceIn(0, AGE_MAX) * 1000

    /** For how long it is good (RFC 9111 §5.2.2.1). */
    private fun age(head: PortcullisResponse): Long {
        val stated = (head.field("Cache-Control") ?: "").split(',').map { it.trim().lowered() }
            .firstOrNull { it.startsWith("max-age=") }?.substringAfter('=')?.toLongOrNull()
        if (stated == null) return PortcullisLimits.PLAN_USUAL_AGE
        return (stated.coerceIn(0, AGE_MAX) * 1000 - cachedFor(head)).coerceIn(60_000, HOLD_MAX)
    }

    // The file.

    private fun load() {
        hasLoaded = true
        val kept = file?.read(clock.now()) ?: return
        routes.remember(kept.lessons)
        val plan = kept.plan ?: return
        if (!fetches) return
        try {
            routes.adopt(SigningPlan.read(plan.json), RouteTable.PLAN_ORDER)
            held = Held(plan.json, plan.tag?.takeIf { isFit(it) }, plan.served, plan.time)
        } catch (error: PlanUnfit) {
            // It is fetched.
        }
    }

    /** Writes the file, soon. */
    private fun save() {
        if (file == null) return
        needsSaving = true
        if (isSaving || isClosed) return
        isSaving = true
        Threads.run {
            while (true) {
                val pause = synchronized(this) { maxOf(0, lastSaved + SAVING_PAUSE - System.nanoTime() / 1_000_000) }
                if (lastSaved != 0L) Thread.sleep(pause)
                val plan = synchronized(this) {
                    needsSaving = false
                    lastSaved = System.nanoTime() / 1_000_000
                    held
                }
                file.write(plan, routes.lessons())
                synchronized(this) {
                    if (!needsSaving) isSaving = false
                    !needsSaving
                }.let { if (it) return@run }
            }
        }
    }

    private companion object {
        /** The longest `Retry-After` and the longest life that are obeyed. */
        const val HOLD_MAX = 86_400_000L
        const val AGE_MAX = 1_000_000_000L
        /** How far the gateway's clock may be ahead of the phone's. */
        const val AHEAD_MAX = 86_400_000L
        /** The least time between two writes of the file. */
        const val SAVING_PAUSE = 5_000L
    }
}
