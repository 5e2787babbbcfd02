package portcullis.client.driver

import java.io.File
import java.io.IOException
import portcullis.client.machine.Json
import portcullis.client.machine.LearnedRoutes
import portcullis.client.machine.PlanFile
import portcullis.client.machine.PlanUnfit
import portcullis.client.machine.number
import portcullis.client.machine.text
import portcullis.client.readAtMost

/**
 * The file with a plan and lessons: JSON, read and written whole. It is not trusted more than an answer, and what can't
 * be read is ignored. No path is in it: routes are kept by their digests.
 */
internal class RouteFile(private val file: File, private val gateway: String, planBytes: Int) {
    /** What is in it, as far as it is not too old. */
    class Kept(val plan: PlanSource.Held?, val lessons: List<LearnedRoutes.Lesson>)

    private val bytesMax = 2 * planBytes + 2 * 1024 * 1024

    fun read(now: Long): Kept? {
        val bytes = try {
            file.inputStream().use { it.readAtMost(bytesMax) }
        } catch (error: IOException) {
            null
        } ?: return null
        val document = Json.objectOf(String(bytes, Charsets.UTF_8)) ?: return null
        if (document.number("portcullis_routes") != 1.0 || document.text("gateway") != gateway) return null
        val lessons = (document["routes"] as? List<*> ?: emptyList<Any?>()).take(LESSONS_MAX)
        return Kept(plan(document["plan"] as? Map<*, *>, now), lessons.mapNotNull { lesson(it as? Map<*, *>, now) })
    }

    private fun plan(draft: Map<*, *>?, now: Long): PlanSource.Held? {
        val json = draft?.text("json") ?: return null
        val time = draft.number("time")?.toLong() ?: return null
        if (!isRecent(time, now, PLAN_AGE)) return null
        return PlanSource.Held(json, draft.text("tag"), draft.number("served")?.toLong(), time)
    }

    private fun lesson(draft: Map<*, *>?, now: Long): LearnedRoutes.Lesson? {
        val digest = draft?.text("digest") ?: return null
        val time = draft.number("time")?.toLong() ?: return null
        if (!isRecent(time, now, LESSON_AGE)) return null
        val ask = draft["ask"] as? Map<*, *>
        val requirement = try {
            ask?.let { PlanFile.requirement(it, "learned") }
        } catch (error: PlanUnfit) {
            return null
        }
        return LearnedRoutes.Lesson(digest, requirement, draft["observes"] == true, draft["newer"] == true, time)
    }

    /** Replaces it whole. It only saves round trips: where it can't be written, the next start does without. */
    fun write(plan: PlanSource.Held?, lessons: List<LearnedRoutes.Lesson>) {
        val document = linkedMapOf<String, Any?>("portcullis_routes" to 1, "gateway" to gateway)
        if (plan != null) {
            document["plan"] = linkedMapOf(
                "json" to plan.json, "tag" to plan.tag, "served" to plan.served, "time" to plan.time
            )
        }
        document["routes"] = lessons.map {
            linkedMapOf(
                "digest" to it.digest, "ask" to it.requirement?.let { asked -> PlanFile.draft(asked) },
                "observes" to it.observes, "newer" to it.isNewer, "time" to it.time
            )
        }
        try {
            val other = File(file.path + ".new")
            other.writeText(Json.text(document))
            other.renameTo(file)
        } catch (error: IOException) {
            return
        }
    }

    /** Whether a time is not older. One that is to come was written before the clock was set back. */
    private fun isRecent(time: Long, now: Long, age: Long): Boolean = now - time in -86_400_000L until age

    private companion object {
        /** A month. */
        const val PLAN_AGE = 30 * 86_400_000L
        /** A week: a rule that is off says nothing that would correct what was learned. */
        const val LESSON_AGE = 7 * 86_400_000L
        const val LESSONS_MAX = 4_096
    }
}
