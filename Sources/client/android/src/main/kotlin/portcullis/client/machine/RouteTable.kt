package portcullis.client.machine

import portcullis.client.PortcullisLimits
import portcullis.client.ProofFields
import portcullis.client.SigningPlan
import portcullis.client.SigningRequirement

/** What each route asks: by what was said last, an answer or a plan; else by what the app knows. */
internal class RouteTable(plan: SigningPlan?, private val limit: Int) {
    /** What is known of a request's route. */
    sealed class Knowledge {
        class Asks(val requirement: SigningRequirement) : Knowledge()
        object AsksNothing : Knowledge()
        object Unknown : Knowledge()
    }

    private var plan: SigningPlan? = plan
    /** The plan's place in the order in which things were said. The app's own comes before all answers. */
    private var planOrder = 0L
    private var lastOrder = NEWER_ORDER
    private val learned = LearnedRoutes(limit)
    /** Routes where a counter came too late, and until when they count as strict. */
    private val strict = HashMap<LearnedRoutes.Route, Long>()

    @Synchronized
    fun knowledge(method: String, place: RequestPlace, assumed: SigningRequirement?, now: Long): Knowledge {
        val knowledge = lasting(method, place, assumed)
        if (knowledge !is Knowledge.Asks || !isOpen(strict[LearnedRoutes.Route(method, place)], now)) return knowledge
        return Knowledge.Asks(knowledge.requirement.copy(window = 0))
    }

    /** Counts a route as strict for a while. */
    @Synchronized
    fun expectStrict(method: String, place: RequestPlace, now: Long) {
        if (limit <= 0) return
        strict.values.removeAll { !isOpen(it, now) }
        if (strict.size >= limit) strict.remove(strict.entries.sortedBy { it.value }.first().key)
        strict[LearnedRoutes.Route(method, place)] = now + PortcullisLimits.STRICT_TIME
    }

    /** One that ends later than any was made before the clock was set back. */
    private fun isOpen(end: Long?, now: Long) = end != null && end > now && end - now <= PortcullisLimits.STRICT_TIME

    /** What is known but for what passes. */
    private fun lasting(method: String, place: RequestPlace, assumed: SigningRequirement?): Knowledge {
        val entry = learned.entry(LearnedRoutes.Route(method, place))
        if (entry != null && entry.order >= planOrder) return knowledge(entry)
        val answer = plan?.answer(method, place)
        return when {
            answer is SigningPlan.Answer.Asks -> Knowledge.Asks(answer.requirement)
            answer == SigningPlan.Answer.Off -> Knowledge.AsksNothing
            entry != null -> knowledge(entry)
            assumed != null -> Knowledge.Asks(assumed)
            else -> Knowledge.Unknown
        }
    }

    private fun knowledge(entry: LearnedRoutes.Entry) =
        entry.requirement?.let { Knowledge.Asks(it) } ?: Knowledge.AsksNothing

    // Plans.

    /** The next place in the order in which things are said. */
    @Synchronized
    fun nextOrder(): Long {
        lastOrder += 1
        return lastOrder
    }

    /** Takes a plan in the place of the one before. */
    @Synchronized
    fun adopt(plan: SigningPlan, order: Long) {
        this.plan = plan
        planOrder = order
    }

    /** The gateway has said again what the plan says. */
    @Synchronized
    fun confirmPlan(order: Long) {
        planOrder = order
    }

    /** Whether there is a plan, or something was learned of a request's route. */
    @Synchronized
    fun knows(method: String, place: RequestPlace): Boolean =
        plan != null || learned.entry(LearnedRoutes.Route(method, place)) != null

    /** Whether a rule of the plan takes sessions, so that one may be opened ahead. */
    val takesSessions: Boolean
        @Synchronized get() = plan?.rules?.any { it.requirement?.takesSessions == true } ?: false

    // Lessons.

    /** Learns from an answer. Returns whether this was news. */
    @Synchronized
    fun learn(
        lesson: RouteLesson, method: String, place: RequestPlace, assumed: SigningRequirement?, now: Long
    ): Boolean {
        val route = LearnedRoutes.Route(method, place)
        val known = (lasting(method, place, assumed) as? Knowledge.Asks)?.requirement
        val requirement = lesson.over(known)
        // What the app assumed was said by nobody.
        val isNews = requirement != known || !knows(method, place)
        if (isNews || lesson.observes != observes(route)) {
            learned.learn(route, LearnedRoutes.Entry(requirement, lesson.observes, nextOrder(), now))
        }
        return isNews
    }

    /** Changes what is known of a route. */
    @Synchronized
    fun amend(
        method: String, place: RequestPlace, assumed: SigningRequirement?, now: Long,
        change: (SigningRequirement) -> SigningRequirement
    ) {
        val known = (lasting(method, place, assumed) as? Knowledge.Asks)?.requirement ?: return
        val route = LearnedRoutes.Route(method, place)
        learned.learn(route, LearnedRoutes.Entry(change(known), observes(route), nextOrder(), now))
    }

    /** The route has the usual names, and the challenge in its field. */
    fun expectUsualPlaces(method: String, place: RequestPlace, assumed: SigningRequirement?, now: Long) =
        amend(method, place, assumed, now) { it.copy(fields = ProofFields(), challengePointer = null) }

    /** Whether the rule of a request's route only observes, as the gateway said last. No plan says so. */
    @Synchronized
    fun observes(method: String, place: RequestPlace): Boolean = observes(LearnedRoutes.Route(method, place))

    private fun observes(route: LearnedRoutes.Route) = learned.entry(route)?.observes ?: false

    /** Takes over what an earlier process has learned. */
    @Synchronized
    fun remember(lessons: List<LearnedRoutes.Lesson>) = learned.remember(lessons)

    /** What the next process is to know. */
    @Synchronized
    fun lessons(): List<LearnedRoutes.Lesson> = learned.lessons(planOrder)

    companion object {
        /** The order of a plan of an earlier process, and of what was learned after it; older lessons have order 0. */
        const val PLAN_ORDER = 1L
        const val NEWER_ORDER = 2L
    }
}

/** What routes were learned to ask, bounded: the one that was used longest ago gives way. */
internal class LearnedRoutes(private val limit: Int) {
    /** A host, a method, and a path whose segments that look like identifiers are alike. */
    data class Route(val host: String, val method: String, val path: String) {
        constructor(method: String, place: RequestPlace) :
            this(place.comparedHost, method, place.segments.joinToString("/", "/") { shape(it) })

        /** By which it is known in a file: a path may say who the user is. */
        val digest: String
            get() = base64(sha256((method + "\n" + host + "\n" + path).toByteArray(Charsets.UTF_8)).copyOf(16))

        private companion object {
            /** `*` for a number, a hexadecimal text or a UUID, and for what is longer than a name. */
            fun shape(segment: String): String {
                val digits = segment.count { it in '0'..'9' }
                val isHex = segment.all { Character.digit(it, 16) >= 0 || it == '-' }
                val isNumber = segment.isNotEmpty() && digits == segment.length
                val looksLikeId = isNumber || digits > 0 && isHex && segment.length >= 8 || segment.length > 24
                return if (looksLikeId) "*" else segment
            }
        }
    }

    /** What is known of a route: what it asks, or `null` for nothing, and when that was said. */
    class Entry(val requirement: SigningRequirement?, val observes: Boolean, val order: Long, val time: Long)

    /** The same in a file. */
    class Lesson(
        val digest: String,
        val requirement: SigningRequirement?,
        val observes: Boolean,
        /** Whether it was learned after the plan had come. */
        val isNewer: Boolean,
        val time: Long
    )

    private val entries = LinkedHashMap<Route, Entry>(16, 0.75f, true)
    /** What an earlier process has learned, as long as it is not used. */
    private val remembered = LinkedHashMap<String, Lesson>()

    fun entry(route: Route): Entry? {
        if (route !in entries && remembered.isNotEmpty()) {
            remembered.remove(route.digest)?.let {
                val order = if (it.isNewer) RouteTable.NEWER_ORDER else 0
                learn(route, Entry(it.requirement, it.observes, order, it.time))
            }
        }
        return entries[route]
    }

    fun learn(route: Route, entry: Entry) {
        if (limit <= 0) return
        entries[route] = entry
        if (entries.size > limit) entries.keys.iterator().let {
            it.next()
            it.remove()
        }
    }

    fun remember(lessons: List<Lesson>) {
        for (lesson in lessons.take(limit)) remembered[lesson.digest] = lesson
    }

    /** What is known of all routes, the newest first. */
    fun lessons(planOrder: Long): List<Lesson> {
        val own = entries.map { (route, entry) ->
            Lesson(route.digest, entry.requirement, entry.observes, entry.order >= planOrder, entry.time)
        }
        return (own.reversed() + remembered.values).take(limit)
    }
}
