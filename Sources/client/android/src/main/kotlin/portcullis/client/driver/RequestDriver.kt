package portcullis.client.driver

import java.io.File
import java.io.IOException
import portcullis.client.Absence
import portcullis.client.Outcome
import portcullis.client.PortcullisAnswer
import portcullis.client.PortcullisConfiguration
import portcullis.client.PortcullisRequest
import portcullis.client.PortcullisResponse
import portcullis.client.PortcullisTransport
import portcullis.client.Proof
import portcullis.client.Refusal
import portcullis.client.machine.AnswerFacts
import portcullis.client.machine.Patience
import portcullis.client.machine.RequestMachine
import portcullis.client.machine.RequestMachine.Effect
import portcullis.client.machine.RequestMachine.Step
import portcullis.client.machine.RequestPlace
import portcullis.client.machine.RouteTable

/** Drives [RequestMachine]: has each request proven, and does what its answers ask for. */
internal class RequestDriver(val configuration: PortcullisConfiguration) {
    val limits = configuration.limits
    val clock = configuration.clock
    val transport: PortcullisTransport = configuration.transport ?: URLTransport(limits.connectWait)
    val gateway: RequestPlace = place(configuration.gateway)
    val routes = RouteTable(configuration.plan, limits.routesLearned)
    val plans: PlanSource?
    val prover: Prover
    private val origins: Set<String>
    private val makesTokens: Boolean
    /** Never where others can read the secret. */
    val usesSessions: Boolean

    init {
        val say: (String) -> Unit = { configuration.log?.say(it) }
        val endpoints = configuration.endpoints.let { if (it.startsWith("/")) gateway.at(it) else place(it) }
        val calls = GatewayCalls(endpoints, transport, limits, clock)
        val tokens = TokenSource(configuration.tokens, say)
        val parts = EnrolmentRun.Parts(
            endpoints.origin + endpoints.target, limits, clock, RecordFile.of(configuration.record),
            TimedKeys(configuration.keys, limits), calls, tokens, configuration.enrolsWithToken, say
        )
        prover = Prover(
            configuration.packageName, limits, clock, parts, Enroller(parts, configuration.context),
            ChallengeSource(calls, limits, clock), SessionKeeper(clock, say), SessionOpener(calls, clock, say)
        )
        origins = (configuration.origins.map { place(it).origin } + gateway.origin + endpoints.origin).toSet()
        makesTokens = tokens.canBeMade
        usesSessions = configuration.usesSessions && endpoints.keepsSecrets
        val file: File? = configuration.routes
        val fetches = configuration.fetchesPlan && endpoints.keepsSecrets
        plans = if (fetches || file != null) PlanSource(calls, routes, limits, clock, file, fetches, say) else null
    }

    private fun place(url: String): RequestPlace =
        RequestPlace.of(url) ?: throw IllegalArgumentException("no URL of HTTP: " + url)

    fun isOwn(place: RequestPlace) = place.origin in origins

    /** @throws IllegalArgumentException where the target can't be sent as it stands. */
    fun draft(request: PortcullisRequest): Draft {
        val place = if (!request.target.startsWith("/")) place(request.target) else {
            // As it is signed. Resolved against the gateway, `//name/path` would go to another host.
            if (!RequestPlace.isTarget(request.target)) throw IllegalArgumentException("no target: " + request.target)
            gateway.at(request.target)
        }
        val assumed = request.requirement ?: configuration.defaultRequirement
        return Draft(request.method, place, request.fields, request.content, assumed)
    }

    /** The life of a request; of the rest of it, after a redirect. */
    fun machine(draft: Draft, requiresProof: Boolean, patience: Patience) = RequestMachine(
        limits, usesSessions, RequestMachine.isRepeatable(draft.method, draft.fields), requiresProof, makesTokens,
        patience
    )

    /** The request with what it is to carry, as far as that can be had. */
    @Throws(IOException::class)
    fun prove(draft: Draft, machine: RequestMachine): Proven {
        if (plans != null && isOwn(draft.place)) {
            machine.patience.wait(limits.planWait) { plans.prepare(it) { routes.knows(draft.method, draft.place) } }
        }
        val knowledge = routes.knowledge(draft.method, draft.place, draft.assumed, clock.now())
        val want = machine.began(knowledge, isOwn(draft.place), routes.observes(draft.method, draft.place))
        return prover.proven(draft, want, machine.waits, machine.patience)
    }

    /** Does what an answer asks for, keeps the challenge that came with it, and says what is next. */
    fun settle(response: PortcullisResponse, draft: Draft, proven: Proven, machine: RequestMachine): Step {
        val now = clock.now()
        val own = isOwn(draft.place)
        val read = AnswerFacts.of(response, own, now)
        // Up to a second more: the field has whole seconds, and a crowd was told the same.
        val facts = AnswerFacts(
            read.status, read.refusal, read.retryAfter?.let { it + (Math.random() * 1000).toLong() }, read.lesson,
            read.next, read.nextKeyId, read.nextReason
        )
        facts.refusal?.let { configuration.log?.say("refused " + it.reason + ", next " + it.next.word) }
        val verdict = machine.answered(facts, proven.proof, proven.token, now)
        for (effect in verdict.effects) perform(effect, draft, proven)
        // After the effects, which may forget the older ones.
        if (own && !response.isCached) response.field(AnswerFacts.CHALLENGE)?.let { prover.challenges.add(it) }
        return verdict.step
    }

    /** What the gateway refused in an answer to a request. */
    fun refusal(response: PortcullisResponse, draft: Draft): Refusal? =
        if (isOwn(draft.place) && !response.isCached) AnswerFacts.own(response)?.first else null

    /** What the app gets for an answer. */
    fun outcome(answer: PortcullisAnswer, mayHaveRun: Boolean): Outcome = when {
        mayHaveRun -> Outcome.MayHaveRun(answer)
        answer.refusal != null && (answer.proof as? Proof.None)?.absence == Absence.RequestUnfit -> Outcome.Unfit(answer)
        answer.refusal?.next == Refusal.Next.GET_TOKEN -> Outcome.GetToken(answer, answer.refusal.tokens)
        else -> Outcome.Answered(answer)
    }

    /** Waits where a step asks for it. Returns whether the request is sent again, now. */
    @Throws(InterruptedException::class)
    fun waits(step: Step, machine: RequestMachine): Boolean = when (step) {
        Step.Deliver -> false
        Step.Again -> true
        is Step.AgainAfter -> {
            val pause = maxOf(0, step.time - clock.now())
            clock.sleep(pause)
            machine.patience.spend(pause)
            true
        }
    }

    private fun perform(effect: Effect, draft: Draft, proven: Proven) {
        val method = draft.method
        val place = draft.place
        val now = clock.now()
        when (effect) {
            is Effect.Learn -> if (routes.learn(effect.lesson, method, place, draft.assumed, now)) plans?.doubt()
            Effect.ExpectStrict -> routes.expectStrict(method, place, now)
            Effect.ExpectUsualPlaces -> routes.expectUsualPlaces(method, place, draft.assumed, now)
            Effect.ExpectAssertions ->
                routes.amend(method, place, draft.assumed, now) { it.copy(takesSessions = false) }
            is Effect.ForgetKey -> prover.forget(effect.keyId, effect.reason)
            Effect.ForgetChallenges -> prover.challenges.clear()
            Effect.ForgetSession -> proven.ticket?.let { prover.sessions.forget(it.opening.id) }
            Effect.Enrol -> prover.enroller.key(0)
        }
    }
}
