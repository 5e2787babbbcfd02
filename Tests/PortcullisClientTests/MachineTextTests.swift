import Expectations
import Foundation
import Testing

@testable import PortcullisClient

/// The page that says what a client does, with every number: the numbers are those of the code.
@Suite struct MachineTextTests {
    private static let page = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Sources/client/docs/machine.md")

    private static let usual = PortcullisLimits()

    /// Each limit as the code has it, by its name in the page.
    private static let limits: [String: Double] = configurable.merging(fixed) { $1 }

    private static let configurable: [String: Double] = [
        "limits.proofWait": usual.proofWait.seconds,
        "limits.enrolmentWait": usual.enrolmentWait.seconds,
        "limits.planWait": usual.planWait.seconds,
        "limits.challengeWait": usual.challengeWait.seconds,
        "limits.sessionWait": usual.sessionWait.seconds,
        "limits.deviceTokenWait": usual.deviceTokenWait.seconds,
        "limits.assertionWait": usual.assertionWait.seconds,
        "limits.retryWait": usual.retryWait.seconds,
        "limits.strictWait": usual.strictWait.seconds,
        "limits.strictTurn": usual.strictTurn.seconds,
        "limits.maximumAttempts": Double(usual.maximumAttempts),
        "limits.redirects": Double(usual.redirects),
        "limits.callTime": usual.callTime.seconds,
        "limits.keysPerDay": Double(usual.keysPerDay),
        "limits.enrolmentDelay": usual.enrolmentDelay.seconds,
        "limits.enrolmentDelayMax": usual.enrolmentDelayMax.seconds,
        "limits.retryAfterMax": usual.retryAfterMax.seconds,
        "limits.serviceWait": usual.serviceWait.seconds,
        "limits.lease": usual.lease.seconds,
        "limits.challengesAsked": Double(usual.challengesAsked),
        "limits.challengesKept": Double(usual.challengesKept),
        "limits.challengeLifetime": usual.challengeLifetime.seconds,
        "limits.routesLearned": Double(usual.routesLearned),
    ]

    private static let fixed: [String: Double] = [
        "observedWait": Prover.observedWait,
        "leastForDevice": Patience.leastForDevice,
        "strictTime": RouteTable.strictTime,
        "unfinishedMax": Double(RequestMachine.unfinishedMax),
        "heldMax": Double(RequestMachine.heldMax),
        "idleTime": GatewayCalls.idleTime,
        "retrySpread": EnrolmentMachine.retrySpread,
        "unexplainedDelay": EnrolmentMachine.unexplainedDelay,
        "leaseLook": EnrolmentRun.leaseLook,
        "lookEvery": Enroller.lookEvery,
        "unfitMax": Double(Prover.unfitMax),
        "signingTries": Double(Prover.signingTries),
        "signingTriesMax": Double(TimedService.signingTriesMax),
        "openingTries": Double(Prover.openingTries),
        "shortHold": SessionKeeper.shortHold,
        "longHold": SessionKeeper.longHold,
        "countMax": Double(ChallengeKeeper.countMax),
        "callsMax": Double(ChallengeKeeper.callsMax),
        "usedMax": Double(ChallengePool.usedMax),
        "challengeHoldMax": ChallengeKeeper.holdMax,
        "fruitlessHold": ChallengeKeeper.fruitlessHold,
        "fruitlessMax": Double(ChallengeKeeper.fruitlessMax),
        "planUsualAge": PlanSource.usualAge,
        "planFailureHold": PlanSource.failureHold,
        "planFailureHoldMax": PlanSource.failureHoldMax,
        "planDoubtAge": PlanSource.doubtAge,
    ]

    @Test func `the table of limits says what the code does`() throws {
        let text = try String(contentsOf: Self.page, encoding: .utf8)
        let table = try #require(text.range(of: "## Limits"))
        let rows = text[table.upperBound...].split(separator: "\n")
            .filter { $0.hasPrefix("| `") }
            .map { $0.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) } }
        var found: [String: Double] = [:]
        for row in rows {
            let name = row[0].trimmingCharacters(in: CharacterSet(charactersIn: "`"))
            #expect(found[name] == nil, "\(name) stands twice")
            found[name] = Double(row[1])
        }
        expectEqual(found, Self.limits)
    }

    /// A key that Android's keystore can't make was not attested, and costs nothing.
    private static let ofAppleAlone = "unexplainedDelay"

    @Test func `the client for Android has the same limits`() throws {
        let file = Self.page.deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "android/src/main/kotlin/portcullis/client/PortcullisLimits.kt")
        let text = try String(contentsOf: file, encoding: .utf8)
        var found: [String: Double] = [:]
        for line in text.split(separator: "\n") {
            guard let match = line.firstMatch(of: /(var|const val) (\w+) = ([0-9_.]+)(L?)$/),
                let number = Double(match.3.filter { $0 != "_" })
            else { continue }
            // Times are in milliseconds, and are written as long numbers.
            let value = match.4.isEmpty ? number : number / 1000
            let name = match.1 == "var" ? "limits.\(match.2)" : Self.name(ofConstant: match.2)
            found[name] = value
        }
        for (name, value) in Self.limits where name != Self.ofAppleAlone {
            expectEqual(found[name], value, "\(name)")
        }
    }

    /// `challengesKept` of `CHALLENGES_KEPT`.
    private static func name(ofConstant text: Substring) -> String {
        let words = text.split(separator: "_").map { $0.lowercased() }
        return words.enumerated().map { $0.offset == 0 ? $0.element : $0.element.capitalized }
            .joined()
    }

    @Test func `every name of a limit that the page uses is a row of the table`() throws {
        let text = try String(contentsOf: Self.page, encoding: .utf8)
        let words = text.split(separator: "`", omittingEmptySubsequences: false)
            .enumerated()
            .filter { $0.offset % 2 == 1 }
            .map { String($0.element) }
        let named = words.filter {
            $0.hasPrefix("limits.") && $0.dropFirst(7).allSatisfy(\.isLetter)
        }
        #expect(named.count > 30)
        for name in named { #expect(Self.limits[name] != nil, "\(name)") }
    }

    @Test func `the page names each reason and step that the client acts on`() throws {
        let text = try String(contentsOf: Self.page, encoding: .utf8)
        let steps = ["sign-again", "enrol", "retry-later", "fix-client", "get-token", "none"]
        let reasons = [
            "counter-replayed", "challenge-spent", "session-replayed", "device-token-used",
            "signature-mismatch", "assertion-missing", "challenge-missing", "challenge-unknown",
            "challenge-expired", "device-token-missing", "assertion-malformed",
        ]
        for word in steps + reasons { #expect(text.contains("`\(word)`"), "\(word)") }
    }
}
