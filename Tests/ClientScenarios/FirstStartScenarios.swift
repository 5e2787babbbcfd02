import Expectations
import Foundation
import HTTPWire
import Signatures
import TestSupport
import Testing
import Verification

@testable import PortcullisClient

extension ClientScenarios {
    /// Many first starts at once, in a time that is counted and not waited: the client's machine
    /// before the gateway's rate.
    @Suite struct FirstStarts {
        /// An install that enrols.
        private struct Install {
            var machine = EnrolmentMachine(
                EnrolmentRecord(gateway: "g"),
                limits: PortcullisLimits()
            )
            /// When it asks next, in seconds.
            var due = 0.0
            /// How often it was told to come later.
            var holds = 0
        }

        private static let start = Date(timeIntervalSince1970: 1_800_000_000)

        /// The gateway of a release day, after a pause.
        private static func gateway() -> EnrolmentAdmission {
            var settings = EnrolmentAdmission.Settings()
            (settings.perSecond, settings.burst) = (1, 1)
            return EnrolmentAdmission(settings)
        }

        /// Asks for a challenge: `nil` where it came, and else when the install comes again.
        private static func ask(
            _ install: inout Install,
            at gateway: EnrolmentAdmission,
            drawing random: inout SeededGenerator
        ) throws -> Double? {
            let now = start.addingTimeInterval(install.due)
            var action = install.machine.began(now: now)
            if action == .generateKey { action = install.machine.keyGenerated("k") }
            expectEqual(action, .askChallenge(keyID: "k"))
            let answer = gateway.ask(
                EnrolmentAdmission.Caller(address: .v4(0x7F00_0001)),
                now: UnixTime(seconds: Int64(now.timeIntervalSince1970)),
                tick: UInt64((1_000 + install.due) * 1e9),
                draw: random.next()
            )
            guard case .throttled(let seconds) = answer else {
                expectEqual(answer, .admitted)
                return nil
            }
            let refusal = EndpointFailure.refused(
                reason: "enrolment-throttled",
                .retryLater,
                retryAfter: Double(seconds)
            )
            let jitter = Double.random(in: 0..<1, using: &random)
            let stop = install.machine.challengeFailed(refusal, now: now, jitter: jitter)
            guard case .stop(let hold) = stop else { throw ClientFault("\(stop)") }
            install.holds += 1
            return hold.until.timeIntervalSince(start)
        }

        private struct ClientFault: Error {
            let text: String

            init(_ text: String) { self.text = text }
        }

        /// A request waits for the end of a hold where that is within its time: else it is refused
        /// at once, however much of its time is left.
        @Test(arguments: 1...200 as ClosedRange<UInt64>)
        func `five first starts at one enrolment a second are all admitted within ten seconds`(
            round: UInt64
        ) throws {
            let limits = PortcullisLimits()
            let stated = min(limits.enrolmentWait, limits.proofWait) / .seconds(1)
            expectEqual(stated, 10)
            var random = SeededGenerator(seed: round)
            let gateway = Self.gateway()
            var waiting = Array(repeating: Install(), count: 5)
            while let first = waiting.indices.min(by: { waiting[$0].due < waiting[$1].due }) {
                guard let next = try Self.ask(&waiting[first], at: gateway, drawing: &random) else {
                    waiting.remove(at: first)
                    continue
                }
                waiting[first].due = next
                try #require(next < stated && waiting[first].holds < RequestMachine.heldMax)
            }
        }
    }
}
