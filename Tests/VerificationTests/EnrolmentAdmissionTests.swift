import AppAttest
import Cryptography
import Expectations
import HTTPWire
import Rules
import Testing
import Tokens
import Verification

@Suite struct EnrolmentAdmissionTests {
    private typealias Caller = EnrolmentAdmission.Caller

    private static let second: UInt64 = 1_000_000_000
    private static let start: UInt64 = 1 << 40

    private let table = AddressTable(capacity: 1 << 16, key: (1, 2))

    private func admission(
        _ perSecond: Int,
        burst: Int,
        _ ramp: Rollout.Schedule = .fixed(.whole)
    ) -> EnrolmentAdmission {
        var settings = EnrolmentAdmission.Settings()
        (settings.perSecond, settings.burst, settings.ramp) = (perSecond, burst, ramp)
        return EnrolmentAdmission(settings)
    }

    private func caller(_ address: UInt32) throws -> Caller {
        guard case .held(let entry) = table.hold(.v4(address), now: 1, max: nil) else {
            throw Trial.Absent()
        }
        return Caller(address: .v4(address), entry: entry)
    }

    private func ask(
        _ admission: EnrolmentAdmission,
        _ caller: Caller,
        at tick: UInt64 = start,
        draw: UInt64 = 0
    ) -> EnrolmentAdmission.Answer {
        admission.ask(caller, now: Trial.start, tick: tick, draw: draw)
    }

    // MARK: Rate

    @Test func `a burst is admitted, then as many a second as the rate says`() throws {
        let admission = admission(10, burst: 20)
        let callers = try (0..<40).map { try caller($0) }
        let answers = callers.map { ask(admission, $0) }
        expectEqual(answers.count { $0 == .admitted }, 20)
        #expect(answers.prefix(20).allSatisfy { $0 == .admitted })
        // Ten of them a second, in the order of their calls.
        let waits = answers.dropFirst(20).map { answer in
            if case .throttled(let wait) = answer { wait } else { 0 }
        }
        expectEqual(waits, Array(repeating: 1, count: 10) + Array(repeating: 2, count: 10))
        let later = callers.map { ask(admission, $0, at: Self.start + Self.second) }
        expectEqual(later.count { $0 == .admitted }, 10)
    }

    @Test func `a crowd of a thousand is told to come over a hundred seconds, not in one`() throws {
        let admission = admission(10, burst: 10)
        var seconds: [Int: Int] = [:]
        for number in 0..<1_010 {
            let draw = UInt64(number) &* 0x9E37_79B9_7F4A_7C15
            if case .throttled(let wait) = ask(admission, try caller(UInt32(number)), draw: draw) {
                seconds[wait, default: 0] += 1
            }
        }
        expectEqual(seconds.values.reduce(0, +), 1_000)
        #expect(seconds.keys.max() ?? 0 <= 126)
        #expect(seconds.values.max() ?? 0 <= 20)
    }

    @Test func `no one is told to wait for more than an hour, and the longest waits differ`() throws
    {
        let admission = admission(1, burst: 1)
        var waits: [Int] = []
        for number in 0..<20_000 {
            let draw = UInt64(number) &* 0x9E37_79B9_7F4A_7C15
            let caller = Caller(address: .v4(UInt32(number)))
            if case .throttled(let wait) = ask(admission, caller, draw: draw) { waits.append(wait) }
        }
        expectEqual(waits.count, 19_999)
        #expect(waits.allSatisfy { (1...3_600).contains($0) })
        #expect(Set(waits.suffix(10_000)).count > 1_000)
    }

    @Test func `one address that asks all the time leaves the others what they need`() throws {
        let admission = admission(100, burst: 100)
        let greedy = try caller(1)
        var taken = 0
        var honest = 0
        for step in 0..<1_000 {
            let tick = Self.start + UInt64(step) * Self.second / 100
            // A hundred calls for each that the rate allows.
            taken += (0..<100).count { _ in ask(admission, greedy, at: tick) == .admitted }
            // Fifty other clients a second, each from its own address.
            guard step.isMultiple(of: 2) else { continue }
            if ask(admission, try caller(UInt32(100 + step)), at: tick) == .admitted { honest += 1 }
        }
        expectEqual(honest, 500)
        // It takes what is left: half of the rate, and half of the first burst.
        #expect((500...560).contains(taken), "\(taken)")
    }

    @Test func `an address alone has the whole rate`() throws {
        let admission = admission(100, burst: 100)
        let only = try caller(1)
        var admitted = 0
        for step in 0..<1_000 {
            let tick = Self.start + UInt64(step) * Self.second / 100
            if ask(admission, only, at: tick) == .admitted { admitted += 1 }
        }
        #expect(admitted >= 990)
    }

    @Test func `refused calls of one address make no other wait longer`() throws {
        let admission = admission(10, burst: 10)
        let greedy = try caller(1)
        for _ in 0..<10_000 { _ = ask(admission, greedy) }
        for number in 2..<7 { expectEqual(ask(admission, try caller(UInt32(number))), .admitted) }
        // The bucket is empty now, and the queue of the others as well.
        expectEqual(ask(admission, try caller(7)), .throttled(waitSeconds: 1))
    }

    // MARK: Ramp

    private func keyID(_ number: Int) throws -> KeyID {
        try #require(KeyID(bytes: SHA256.digest(of: Array("key \(number)".utf8)).array))
    }

    @Test func `a key outside the share takes nothing from the rate and is told to come later`()
        throws
    {
        let share = try #require(Share(percent: "10%"))
        let admission = admission(100, burst: 1_000, .fixed(share))
        var caller = try caller(1)
        var admitted: [Int] = []
        for number in 0..<500 {
            caller.keyID = try keyID(number)
            switch ask(admission, caller, draw: UInt64(number)) {
            case .admitted: admitted.append(number)
            case .notYet(let wait): #expect((1_800...3_600).contains(wait))
            case .throttled: Issue.record("throttled")
            }
        }
        #expect((25...75).contains(admitted.count), "\(admitted.count)")
        // The same keys again, by the function of the rules' rollouts.
        let rollout = Rollout(.fixed(share), salt: "enrolment")
        for number in 0..<500 {
            let bytes = try keyID(number).digest.array
            expectEqual(rollout.enforces(bytes.span, at: Trial.start), admitted.contains(number))
        }
    }

    @Test func `where the ramp grows, a key is told when its turn comes, and it comes`() throws {
        let from = Trial.start
        let to = from.advanced(bySeconds: 2_000)
        let ramp = Rollout.Schedule.growing(from: from, to: to, start: .none, end: .whole)
        let admission = admission(100, burst: 1_000, ramp)
        for number in 0..<50 {
            var caller = Caller(address: .v4(1))
            caller.keyID = try keyID(number)
            guard case .notYet(let wait) = ask(admission, caller) else { continue }
            guard wait > 1 else { continue }
            func answer(after seconds: Int) -> EnrolmentAdmission.Answer {
                let now = from.advanced(bySeconds: Int64(seconds))
                return admission.ask(caller, now: now, tick: Self.start, draw: 0)
            }
            expectEqual(answer(after: wait), .admitted)
            #expect(answer(after: wait - 1) != .admitted)
        }
    }

    @Test func `before the ramp begins nobody is admitted, behind its end everybody`() throws {
        let from = Trial.start
        let to = from.advanced(bySeconds: 3_600)
        let admission = admission(
            100,
            burst: 1_000,
            .growing(from: from, to: to, start: .whole, end: .whole)
        )
        let early = from.advanced(bySeconds: -100)
        let waiting = admission.ask(try caller(1), now: early, tick: Self.start, draw: 7)
        // A hundred seconds, and up to a quarter more.
        expectEqual(waiting, .notYet(waitSeconds: 107))
        expectEqual(admission.ask(try caller(1), now: to, tick: Self.start, draw: 7), .admitted)
    }

    @Test func `without a key id the address decides, the same each time`() throws {
        let share = try #require(Share(percent: "50%"))
        let admission = admission(10_000, burst: 10_000, .fixed(share))
        let callers = try (0..<200).map { try caller(UInt32($0)) }
        let first = callers.map { ask(admission, $0) == .admitted }
        let again = callers.map { ask(admission, $0) == .admitted }
        expectEqual(first, again)
        #expect((60...140).contains(first.count(where: \.self)))
    }

    // MARK: The endpoint

    @Test func `the endpoint admits, throttles, and counts each`() throws {
        var settings = EnrolmentAdmission.Settings()
        (settings.perSecond, settings.burst) = (1, 3)
        let fixture = try EnrolmentFixture(admission: settings)
        guard
            case .challenges(.enrolment, let texts, _) = fixture.challenges(
                #"{"purpose":"enrolment","count":8}"#
            )
        else { throw Trial.Absent() }
        // Fewer than were asked for, and at least one.
        expectEqual(texts.count, 3)
        guard case .refuse(let refused) = fixture.challenges(#"{"purpose":"enrolment"}"#) else {
            throw Trial.Absent()
        }
        expectEqual(refused.refusal, .enrolmentThrottled)
        #expect(refused.waitSeconds >= 1)
        // Assertion challenges have no such rate.
        for _ in 0..<50 {
            guard case .challenges = fixture.challenges("") else { throw Trial.Absent() }
        }
    }

    @Test func `the endpoint reads the key id that the ramp looks at`() throws {
        var settings = EnrolmentAdmission.Settings()
        settings.ramp = .fixed(try #require(Share(percent: "50%")))
        let fixture = try EnrolmentFixture(admission: settings)
        let rollout = Rollout(settings.ramp, salt: "enrolment")
        for number in 0..<20 {
            let keyID = try keyID(number)
            let document = #"{"purpose":"enrolment","key_id":"\#(keyID.base64)"}"#
            let isWithin = rollout.enforces(keyID.digest.bytes.span, at: fixture.now)
            switch fixture.challenges(document) {
            case .challenges: #expect(isWithin)
            case .refuse(let refused):
                expectEqual(refused.refusal, .enrolmentNotYet)
                #expect(!isWithin)
            case .enrolled: Issue.record("no answer of this endpoint")
            }
        }
    }
}
