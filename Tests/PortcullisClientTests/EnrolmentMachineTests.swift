import Expectations
import Foundation
import Testing

@testable import PortcullisClient

@Suite struct EnrolmentMachineTests {
    private static let start = Date(timeIntervalSince1970: 1_800_000_000)
    private static let grant = EnrolmentGrant(
        challenge: "AQK5",
        context: nil,
        until: start.timeIntervalSince1970 + 3600
    )
    private let object = Data([1, 2, 3])

    private func machine(_ phase: EnrolmentRecord.Phase = .none) -> EnrolmentMachine {
        var record = EnrolmentRecord(gateway: "g")
        record.phase = phase
        return EnrolmentMachine(record, limits: PortcullisLimits())
    }

    private func after(_ seconds: Double) -> Date { Self.start.addingTimeInterval(seconds) }

    private func hold(_ cause: EnrolmentHold.Cause, _ seconds: Double) -> EnrolmentMachine.Action {
        .stop(EnrolmentHold(cause, until: after(seconds)))
    }

    @Test func `from no key to an enrolled one`() {
        var machine = machine()
        let now = Self.start
        expectEqual(machine.began(now: now), .generateKey)
        expectEqual(machine.keyGenerated("k"), .askChallenge(keyID: "k"))
        expectEqual(
            machine.challengeReceived(Self.grant, now: now),
            .attest(keyID: "k", Self.grant)
        )
        let next = EnrolmentMachine.Action.register(keyID: "k", Self.grant, object: object)
        expectEqual(machine.attested(object, now: now), next)
        expectEqual(machine.registered(), .done(keyID: "k"))
        expectEqual(machine.record.phase, .enrolled(keyID: "k"))
        expectEqual(machine.record.attestations, [now.timeIntervalSince1970])
    }

    @Test func `every kept phase goes on where it stands`() {
        let now = Self.start
        var machine = machine(.generated(keyID: "k", nil))
        expectEqual(machine.began(now: now), .askChallenge(keyID: "k"))
        machine = self.machine(.generated(keyID: "k", Self.grant))
        expectEqual(machine.began(now: now), .attest(keyID: "k", Self.grant))
        machine = self.machine(.attested(keyID: "k", Self.grant, object: object))
        let next = EnrolmentMachine.Action.register(keyID: "k", Self.grant, object: object)
        expectEqual(machine.began(now: now), next)
        machine = self.machine(.enrolled(keyID: "k"))
        expectEqual(machine.began(now: now), .done(keyID: "k"))
    }

    @Test func `serverUnavailable keeps key and grant, and its delays double`() {
        var machine = machine(.generated(keyID: "k", Self.grant))
        var delays: [Double] = []
        for _ in 0..<13 {
            let action = machine.attestFailed(.serverUnavailable, now: Self.start, jitter: 1)
            guard case .stop(let hold) = action else { return #expect(Bool(false), "\(action)") }
            expectEqual(hold.cause, .appleUnavailable)
            delays.append(hold.until.timeIntervalSince(Self.start))
        }
        expectEqual(delays, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600])
        expectEqual(machine.record.phase, .generated(keyID: "k", Self.grant))
        #expect(machine.began(now: after(3601)) != .generateKey)
    }

    @Test func `a challenge that has ended is asked for anew, for the same key`() {
        var machine = machine(.generated(keyID: "k", nil))
        _ = machine.challengeReceived(Self.grant, now: Self.start)
        _ = machine.attestFailed(.serverUnavailable, now: Self.start, jitter: 0)
        expectEqual(machine.began(now: after(3600)), .askChallenge(keyID: "k"))
        _ = machine.challengeReceived(Self.grant, now: after(3600))
        // Apple counts keys.
        expectEqual(machine.record.attestations.count, 1)
    }

    @Test func `invalidKey makes another key at once, and a second time waits`() {
        var machine = machine(.generated(keyID: "k", Self.grant))
        expectEqual(machine.attestFailed(.invalidKey, now: Self.start, jitter: 1), .generateKey)
        _ = machine.keyGenerated("l")
        _ = machine.challengeReceived(Self.grant, now: Self.start)
        let second = machine.attestFailed(.invalidKey, now: Self.start, jitter: 1)
        expectEqual(second, hold(.keysLost, 32))
        expectEqual(machine.record.phase, .none)
    }

    @Test func `unknownSystemFailure keeps key and grant once, also in the next process`() {
        let phase = EnrolmentRecord.Phase.generated(keyID: "k", Self.grant)
        var machine = machine(phase)
        let held = machine.attestFailed(.unknownSystemFailure, now: Self.start, jitter: 0)
        expectEqual(held, hold(.serviceFailed(.unknownSystemFailure), 1))
        expectEqual(machine.record.phase, phase)
        let record = EnrolmentRecord(machine.record.bytes, gateway: machine.record.gateway)
        machine = EnrolmentMachine(record, limits: PortcullisLimits())
        expectEqual(machine.began(now: after(1)), .attest(keyID: "k", Self.grant))
        _ = machine.attestFailed(.unknownSystemFailure, now: after(1), jitter: 0)
        expectEqual(machine.record.phase, .none)
        // A new key has its own try, and is the last one that a day spends on it.
        _ = machine.keyGenerated("l")
        _ = machine.challengeReceived(Self.grant, now: after(9))
        let second = EnrolmentRecord.Phase.generated(keyID: "l", Self.grant)
        var holds: [EnrolmentMachine.Action] = []
        for time in [9.0, 20, 86_400] {
            holds.append(machine.attestFailed(.unknownSystemFailure, now: after(time), jitter: 0))
            expectEqual(machine.record.phase, second)
        }
        let cause = EnrolmentHold.Cause.serviceFailed(.unknownSystemFailure)
        expectEqual(holds[1...], [hold(cause, 20 + 10_800), hold(cause, 86_400 + 10_800)])
        let kept = EnrolmentRecord(machine.record.bytes, gateway: machine.record.gateway)
        machine = EnrolmentMachine(kept, limits: PortcullisLimits())
        _ = machine.attestFailed(.unknownSystemFailure, now: after(86_402), jitter: 0)
        expectEqual(machine.record.phase, .none)
    }

    @Test(arguments: [AttestationServiceError.invalidInput, .featureUnsupported])
    func `any other failure to attest ends the key and waits`(error: AttestationServiceError) {
        var machine = machine(.generated(keyID: "k", Self.grant))
        let action = machine.attestFailed(error, now: Self.start, jitter: 0)
        expectEqual(action, hold(.serviceFailed(error), 1))
        expectEqual(machine.record.phase, .none)
    }

    @Test func `a failing gateway keeps everything`() {
        let phase = EnrolmentRecord.Phase.attested(keyID: "k", Self.grant, object: object)
        var machine = machine(phase)
        let down = EndpointFailure.unreachable(retryAfter: nil)
        let later = EndpointFailure.refused(reason: "x", .retryLater, retryAfter: 100)
        let never = EndpointFailure.refused(reason: "app-mismatch", .none, retryAfter: nil)
        let first = machine.registerFailed(down, now: Self.start, jitter: 0)
        expectEqual(first, hold(.gatewayUnavailable, 1))
        let second = machine.registerFailed(later, now: Self.start, jitter: 0.5)
        expectEqual(second, hold(.throttled, 112.5))
        let third = machine.registerFailed(never, now: Self.start, jitter: 0)
        expectEqual(third, hold(.refused(reason: "app-mismatch"), 3600))
        expectEqual(machine.record.phase, phase)
    }

    @Test func `a gateway that says enrol ends the key`() {
        var machine = machine(.attested(keyID: "k", Self.grant, object: object))
        let failure = EndpointFailure.refused(reason: "nonce-mismatch", .enrol, retryAfter: nil)
        expectEqual(machine.registerFailed(failure, now: Self.start, jitter: 0), .generateKey)
    }

    @Test func `a Retry-After is obeyed, but none longer than the limit`() {
        var machine = machine(.generated(keyID: "k", nil))
        let failure = EndpointFailure.refused(reason: "x", .retryLater, retryAfter: 1e9)
        let action = machine.challengeFailed(failure, now: Self.start, jitter: 0)
        expectEqual(action, hold(.throttled, 86_400))
        expectEqual(machine.began(now: after(80_000)), action)
        expectEqual(machine.began(now: after(86_400)), .askChallenge(keyID: "k"))
    }

    @Test func `a hold that a clock from the future made does not last`() {
        var machine = machine()
        let failure = EndpointFailure.unreachable(retryAfter: nil)
        _ = machine.challengeFailed(failure, now: after(1e8), jitter: 0)
        expectEqual(machine.began(now: Self.start), .generateKey)
    }

    @Test func `the daily limit counts keys and ends a day after the oldest`() {
        var machine = machine()
        for number in 0..<3 {
            let now = after(Double(number) * 100)
            _ = machine.keyGenerated("\(number)")
            _ = machine.challengeReceived(Self.grant, now: now)
            _ = machine.attested(object, now: now)
            _ = machine.registered()
            expectEqual(machine.forgot(keyID: "\(number)", now: now, jitter: 0), true)
        }
        expectEqual(machine.began(now: after(5000)), hold(.dailyCap, 86_400))
        expectEqual(machine.began(now: after(86_401)), .generateKey)
    }

    @Test func `a clock that is set back by years makes no room for more keys, and holds a day`() {
        var machine = machine()
        for number in 0..<3 {
            _ = machine.keyGenerated("\(number)")
            _ = machine.challengeReceived(Self.grant, now: after(Double(number)))
            _ = machine.attestFailed(.featureUnsupported, now: after(Double(number)), jitter: 0)
        }
        let back = after(-1e8)
        expectEqual(machine.began(now: back), hold(.dailyCap, -1e8 + 86_400))
        expectEqual(machine.began(now: after(-1e8 + 80_000)), hold(.dailyCap, -1e8 + 86_400))
        expectEqual(machine.began(now: after(-1e8 + 86_401)), .generateKey)
    }

    @Test func `a key that signs nothing is replaced once in a day, where the day allows another`()
    {
        var machine = machine(.enrolled(keyID: "k"))
        var answers = [machine.mayReplaceUnfit(now: Self.start)]
        _ = machine.forgot(keyID: "k", now: Self.start, jitter: 0)
        _ = machine.keyGenerated("l")
        _ = machine.challengeReceived(Self.grant, now: Self.start)
        _ = machine.attested(object, now: Self.start)
        _ = machine.registered()
        answers.append(machine.mayReplaceUnfit(now: after(86_000)))
        answers.append(machine.mayReplaceUnfit(now: after(86_401)))
        var limits = PortcullisLimits()
        limits.keysPerDay = 1
        var record = EnrolmentRecord(gateway: "g")
        (record.phase, record.attestations) = (
            .enrolled(keyID: "k"), [Self.start.timeIntervalSince1970]
        )
        var capped = EnrolmentMachine(record, limits: limits)
        answers.append(capped.mayReplaceUnfit(now: after(10)))
        expectEqual(answers, [true, false, true, false])
    }

    @Test func `only the key that was refused is forgotten`() {
        var machine = machine(.enrolled(keyID: "new"))
        expectEqual(machine.forgot(keyID: "old", now: Self.start, jitter: 0), false)
        expectEqual(machine.record.phase, .enrolled(keyID: "new"))
        expectEqual(machine.forgot(keyID: "new", now: Self.start, jitter: 0), true)
        expectEqual(machine.record.phase, .none)
    }
}
