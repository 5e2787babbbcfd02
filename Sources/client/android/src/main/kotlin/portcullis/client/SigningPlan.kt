package portcullis.client

import portcullis.client.machine.Json
import portcullis.client.machine.PlanFile
import portcullis.client.machine.PlanRule
import portcullis.client.machine.PlanUnfit
import portcullis.client.machine.RequestPlace
import portcullis.client.machine.number

/**
 * What the gateway's rules ask of each route, as `portcullis plan` writes it, to be shipped with the app. It saves the
 * first round trip to each route. Where it is silent or outdated, the client learns from answers.
 */
class SigningPlan private constructor(internal val rules: List<PlanRule>, internal val unmatched: SigningRequirement?) {
    /** What a plan says about a request. */
    internal sealed class Answer {
        class Asks(val requirement: SigningRequirement) : Answer()
        object Off : Answer()
        object Silent : Answer()
    }

    /** What the first rule says that matches. */
    internal fun answer(method: String, place: RequestPlace): Answer {
        val rule = rules.firstOrNull { it.matches(method, place) }
        if (rule != null) return rule.requirement?.let { Answer.Asks(it) } ?: Answer.Off
        return unmatched?.let { Answer.Asks(it) } ?: Answer.Silent
    }

    companion object {
        /**
         * Reads a plan.
         *
         * @throws IllegalArgumentException where it is no plan of version 1, or says what this client does not know.
         */
        @JvmStatic
        fun of(json: String): SigningPlan =
            try {
                read(json)
            } catch (error: PlanUnfit) {
                throw IllegalArgumentException(error.message)
            }

        internal fun read(json: String): SigningPlan {
            val draft = Json.objectOf(json) ?: throw PlanUnfit("the plan is no JSON")
            if (draft.number("portcullis_plan") != 1.0) throw PlanUnfit("the plan is of another version than 1")
            val rules = draft["rules"] as? List<*> ?: throw PlanUnfit("the plan has no rules")
            val unmatched = draft["unmatched"] as? Map<*, *>
            return SigningPlan(
                rules.map { PlanFile.rule(it as? Map<*, *> ?: throw PlanUnfit("a rule of the plan is none")) },
                unmatched?.let { PlanFile.requirement(it, "unmatched") }
            )
        }
    }
}
