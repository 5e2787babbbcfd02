import Expectations
import Foundation
import RequestBinding
import Testing

@testable import PortcullisClient

@Suite struct RequestMachineTests {
    private typealias Answer = RequestMachine.Answer
    private static let now = Date(timeIntervalSince1970: 1_800_000_000)
    private static let asks = SigningRequirement()
    private static let lesson = RouteLesson([
        "sign": "method target", "accept": "assertion session",
    ])
    private let key = SentProof.assertion(keyID: "k")

    private func machine(
        usesSessions: Bool = true,
        isRepeatable: Bool = true
    ) -> RequestMachine {
        RequestMachine(
            limits: PortcullisLimits(),
            usesSessions: usesSessions,
            isRepeatable: isRepeatable,
            patience: Patience(PortcullisLimits(), timeout: 60)
        )
    }

    private func refused(_ reason: String, _ next: GatewayRefusal.Next) -> Answer {
        Answer(
            status: 401,
            refusal: GatewayRefusal(reason: reason, next: next),
            lesson: Self.lesson
        )
    }

    private var mismatch: Answer {
        Answer(
            status: 403,
            refusal: GatewayRefusal(reason: "signature-mismatch", next: .none)
        )
    }

    private var learn: RequestMachine.Effect? { Self.lesson.map { .learn($0) } }

    @Test func `what a request carries follows from its route`() {
        var machine = machine()
        let open = SigningRequirement(accepts: [.assertion, .session])
        let thin = SigningRequirement(
            form: .lines([.method, .challenge], headers: []),
            accepts: [.assertion, .session]
        )
        let other = SigningRequirement(accepts: [])
        expectEqual(machine.began(.unknown, isOwnOrigin: true), .nothing(.routeUnknown))
        expectEqual(machine.began(.asksNothing, isOwnOrigin: true), .nothing(.notAsked))
        expectEqual(machine.began(.asks(open), isOwnOrigin: false), .nothing(.otherOrigin))
        expectEqual(machine.began(.asks(Self.asks), isOwnOrigin: true), .assertion(Self.asks))
        expectEqual(machine.began(.asks(open), isOwnOrigin: true), .session(open))
        expectEqual(machine.began(.asks(thin), isOwnOrigin: true), .assertion(thin))
        expectEqual(machine.began(.asks(other), isOwnOrigin: true), .nothing(.requestUnfit))
        var plain = self.machine(usesSessions: false)
        expectEqual(plain.began(.asks(open), isOwnOrigin: true), .assertion(open))
    }

    @Test func `a 401 without the gateway's field is delivered, and nothing is forgotten`() {
        var machine = machine()
        let verdict = machine.answered(Answer(status: 401), to: key, now: Self.now)
        expectEqual(verdict, .init(effects: [], step: .deliver))
    }

    @Test func `an unknown key is forgotten by its id, once for each request`() {
        var machine = machine()
        _ = machine.began(.asks(Self.asks), isOwnOrigin: true)
        let answer = refused("key-unknown", .enrol)
        let forget = RequestMachine.Effect.forgetKey("k", reason: "key-unknown")
        let first = machine.answered(answer, to: key, now: Self.now)
        expectEqual(first, .init(effects: [learn, forget].compactMap { $0 }, step: .again))
        _ = machine.began(.asks(Self.asks), isOwnOrigin: true)
        let second = machine.answered(answer, to: key, now: Self.now)
        expectEqual(second.step, .deliver)
    }

    @Test(arguments: [
        ("challenge-unknown", RequestMachine.Effect.forgetChallenges),
        ("challenge-expired", .forgetChallenges), ("counter-replayed", .expectStrict),
        ("session-refused", .expectAssertions), ("session-unknown", .forgetSession),
        ("session-mismatch", .forgetSession), ("session-expired", .forgetSession),
    ])
    func `a reason changes what is remembered`(reason: String, effect: RequestMachine.Effect) {
        var machine = machine()
        _ = machine.began(.asks(Self.asks), isOwnOrigin: true)
        let verdict = machine.answered(refused(reason, .signAgain), to: key, now: Self.now)
        expectEqual(verdict.effects, [learn, effect].compactMap { $0 })
        expectEqual(verdict.step, .again)
    }

    @Test(arguments: [
        ("session-unknown", false), ("session-refused", false), ("session-replayed", true),
    ])
    func `after a refused session an assertion follows, after a replay the next number`(
        reason: String,
        goesOn: Bool
    ) {
        var machine = machine()
        let open = SigningRequirement(accepts: [.assertion, .session])
        _ = machine.began(.asks(open), isOwnOrigin: true)
        let answer = refused(reason, .signAgain)
        let verdict = machine.answered(answer, to: .session(keyID: "k"), now: Self.now)
        expectEqual(verdict.step, .again)
        let want = machine.began(.asks(open), isOwnOrigin: true)
        expectEqual(want, goesOn ? .session(open) : .assertion(open))
    }

    @Test func `a request is sent as often as the limit says`() {
        var machine = machine()
        var steps: [RequestMachine.Step] = []
        for _ in 0..<3 {
            _ = machine.began(.asks(Self.asks), isOwnOrigin: true)
            let answer = refused("counter-replayed", .signAgain)
            steps.append(machine.answered(answer, to: key, now: Self.now).step)
        }
        expectEqual(steps, [.again, .again, .deliver])
    }

    @Test(arguments: [
        (SentProof.Absence.unsupported, RequestMachine.Step.deliver),
        (.serviceFailed(.invalidInput), .deliver), (.storeUnavailable, .deliver),
        (.routeUnknown, .again), (.enrolling, .again), (.challengeUnavailable, .again),
        (
            .enrolmentHeld(EnrolmentHold(.throttled, until: now.addingTimeInterval(3))),
            .againAfter(now.addingTimeInterval(3))
        ),
        (
            .enrolmentHeld(EnrolmentHold(.throttled, until: now.addingTimeInterval(300))),
            .deliver
        ),
    ])
    func `a missing proof is asked for again only where there can be one`(
        absence: SentProof.Absence,
        step: RequestMachine.Step
    ) {
        var machine = machine()
        _ = machine.began(.asks(Self.asks), isOwnOrigin: true)
        let answer = refused("assertion-missing", .signAgain)
        expectEqual(machine.answered(answer, to: .none(absence), now: Self.now).step, step)
    }

    @Test(arguments: [GatewayRefusal.Next.fixClient, .retryLater, .none])
    func `what no signature mends is delivered`(next: GatewayRefusal.Next) {
        var machine = machine()
        _ = machine.began(.asks(Self.asks), isOwnOrigin: true)
        expectEqual(machine.answered(refused("x", next), to: key, now: Self.now).step, .deliver)
    }

    @Test func `a mismatch is asked about once, without proof`() {
        var machine = machine()
        _ = machine.began(.asks(Self.asks), isOwnOrigin: true)
        let answer = mismatch
        expectEqual(machine.answered(answer, to: key, now: Self.now).step, .again)
        let want = machine.began(.asks(Self.asks), isOwnOrigin: true)
        expectEqual(want, .nothing(.routeUnknown))
        let missing = refused("assertion-missing", .signAgain)
        let bare = machine.answered(missing, to: .none(.routeUnknown), now: Self.now)
        expectEqual(bare.step, .again)
        _ = machine.began(.asks(Self.asks), isOwnOrigin: true)
        expectEqual(machine.answered(answer, to: key, now: Self.now).step, .deliver)
    }

    @Test func `a mismatch that says what the rule signs is signed again, once`() {
        var machine = machine()
        _ = machine.began(.asks(Self.asks), isOwnOrigin: true)
        var answer = mismatch
        answer.lesson = Self.lesson
        let verdict = machine.answered(answer, to: key, now: Self.now)
        expectEqual(verdict, .init(effects: [learn].compactMap { $0 }, step: .again))
        let learned = Self.lesson?.requirement(over: Self.asks) ?? Self.asks
        let want = machine.began(.asks(learned), isOwnOrigin: true)
        expectEqual(want, .assertion(learned))
        expectEqual(machine.answered(answer, to: key, now: Self.now).step, .deliver)
    }

    @Test func `a mismatch of what the rule signs is delivered: the same would be signed again`() {
        var machine = machine()
        let learned = Self.lesson?.requirement(over: Self.asks) ?? Self.asks
        _ = machine.began(.asks(learned), isOwnOrigin: true)
        var answer = mismatch
        answer.lesson = Self.lesson
        expectEqual(machine.answered(answer, to: key, now: Self.now).step, .deliver)
    }

    @Test(arguments: [("assertion-missing", true), ("challenge-missing", true), ("x", false)])
    func `a proof that was not found is put at its usual place, where the answer names no other`(
        reason: String,
        isMoved: Bool
    ) {
        var machine = machine()
        _ = machine.began(.asks(Self.asks), isOwnOrigin: true)
        let verdict = machine.answered(refused(reason, .signAgain), to: key, now: Self.now)
        expectEqual(verdict.effects.contains(.expectUsualPlaces), isMoved)
        let named = RouteLesson(["sign": "target", "fields": "assertion=x-proof"])
        var answer = refused(reason, .signAgain)
        answer.lesson = named
        #expect(
            !machine.answered(answer, to: key, now: Self.now).effects.contains(.expectUsualPlaces)
        )
    }

    @Test(arguments: [
        ("counter-replayed", true), ("challenge-spent", true), ("session-replayed", true),
        ("challenge-expired", false), ("session-unknown", false), ("device-token-used", false),
    ])
    func `a refused copy ends a request that may run once only`(reason: String, isCopy: Bool) {
        var once = machine(isRepeatable: false)
        let answer = refused(reason, .signAgain)
        let verdict = once.answered(answer, to: key, deviceToken: .sent, now: Self.now)
        expectEqual(verdict.step, isCopy ? .deliver : .again)
        expectEqual(once.mayHaveRun, isCopy)
        var often = machine()
        expectEqual(often.answered(answer, to: key, deviceToken: .sent, now: Self.now).step, .again)
        #expect(!often.mayHaveRun)
        // A request that carried no proof is no copy.
        _ = once.answered(answer, to: .none(.challengeUnavailable), now: Self.now)
        #expect(!once.mayHaveRun)
    }

    @Test func `tries that are held take nothing from the attempts`() {
        var machine = machine()
        let missing = refused("assertion-missing", .signAgain)
        let time = Self.now.addingTimeInterval(1)
        let held = SentProof.none(.enrolmentHeld(EnrolmentHold(.throttled, until: time)))
        let steps = (0..<RequestMachine.heldMax).map { _ in
            machine.answered(missing, to: held, now: Self.now).step
        }
        let again = Array(repeating: RequestMachine.Step.againAfter(time), count: steps.count - 1)
        expectEqual(steps, again + [.deliver])
    }

    @Test(arguments: [(nil as String?, true), ("k", true), ("old", false)])
    func `advice about another key is not taken`(keyID: String?, isTaken: Bool) {
        var machine = machine()
        var answer = Answer(status: 200, next: .enrol)
        answer.nextKeyID = keyID
        let verdict = machine.answered(answer, to: key, now: Self.now)
        let effects: [RequestMachine.Effect] = [.forgetKey("k", reason: "observed"), .enrol]
        expectEqual(verdict, .init(effects: isTaken ? effects : [], step: .deliver))
    }

    @Test func `the first advice about a route starts the enrolment, and later ones do not`() {
        for (proof, effects) in [
            (SentProof.none(.routeUnknown), [RequestMachine.Effect.enrol]),
            (.none(.enrolling), []), (key, []),
        ] {
            var machine = machine()
            let answer = Answer(status: 200, next: .signAgain)
            let verdict = machine.answered(answer, to: proof, now: Self.now)
            expectEqual(verdict, .init(effects: effects, step: .deliver))
        }
    }

    @Test(arguments: [
        ("session-unknown" as String?, [RequestMachine.Effect.forgetSession, .forgetChallenges]),
        ("session-refused", [.expectAssertions]), ("session-replayed", []), (nil, []),
    ])
    func `an observing rule's word about a session is taken`(
        reason: String?,
        effects: [RequestMachine.Effect]
    ) {
        var machine = machine()
        var answer = Answer(status: 200, next: .signAgain)
        answer.nextReason = reason
        let verdict = machine.answered(answer, to: .session(keyID: "k"), now: Self.now)
        expectEqual(verdict, .init(effects: effects, step: .deliver))
        expectEqual(machine.answered(answer, to: key, now: Self.now), .init(step: .deliver))
    }

    @Test func `a request that only asks what its route signs takes nothing from the tries`() {
        var machine = machine()
        let missing = refused("assertion-missing", .signAgain)
        let spent = refused("challenge-spent", .signAgain)
        let answers: [(Answer, SentProof)] = [
            (mismatch, key), (missing, .none(.routeUnknown)), (spent, key), (spent, key),
        ]
        let steps = answers.map { machine.answered($0.0, to: $0.1, now: Self.now).step }
        expectEqual(steps, [.again, .again, .again, .deliver])
    }

    @Test(arguments: [
        (SentProof.Absence.routeUnknown, 3), (.challengeUnavailable, 3), (.enrolling, 8),
    ])
    func `tries without proof end, for whatever reason`(absence: SentProof.Absence, count: Int) {
        var machine = machine()
        let missing = refused("assertion-missing", .signAgain)
        let steps = (0..<count).map { _ in
            machine.answered(missing, to: .none(absence), now: Self.now).step
        }
        expectEqual(steps, Array(repeating: .again, count: count - 1) + [.deliver])
    }

    @Test(arguments: [(10.0, RequestMachine.Step.again), (0, .deliver)])
    func `a request with one try asks first, and again while its time lasts for a key`(
        seconds: Double,
        step: RequestMachine.Step
    ) {
        var limits = PortcullisLimits()
        limits.maximumAttempts = 1
        limits.proofWait = .seconds(seconds)
        let patience = Patience(limits, timeout: 60)
        let missing = refused("assertion-missing", .signAgain)
        var machine = RequestMachine(
            limits: limits,
            usesSessions: true,
            isRepeatable: true,
            patience: patience
        )
        let steps = [SentProof.none(.routeUnknown), .none(.enrolling), key].map {
            machine.answered(missing, to: $0, now: Self.now).step
        }
        expectEqual(steps, [.again, step, .deliver])
    }

    @Test(arguments: [
        (2 as Double?, RequestMachine.Step.againAfter(now.addingTimeInterval(2))),
        (10, .againAfter(now.addingTimeInterval(10))), (11, .deliver), (nil, .deliver),
    ])
    func `a short wait that the gateway asks for is kept, a long one is the caller's`(
        seconds: Double?,
        step: RequestMachine.Step
    ) {
        var machine = machine()
        let busy = Answer(
            status: 503,
            refusal: GatewayRefusal(reason: "store-unavailable", next: .retryLater),
            retryAfter: seconds
        )
        expectEqual(machine.answered(busy, to: key, now: Self.now).step, step)
        _ = machine.answered(busy, to: key, now: Self.now)
        expectEqual(machine.answered(busy, to: key, now: Self.now).step, .deliver)
    }

    @Test func `an observing rule's advice is taken, and its answer delivered`() {
        var machine = machine()
        _ = machine.began(.asks(Self.asks), isOwnOrigin: true)
        let answer = Answer(status: 200, lesson: Self.lesson, next: .enrol)
        let forget = RequestMachine.Effect.forgetKey("k", reason: "observed")
        let verdict = machine.answered(answer, to: key, now: Self.now)
        let effects = [learn, forget, .enrol].compactMap { $0 }
        expectEqual(verdict, .init(effects: effects, step: .deliver))
    }
}
