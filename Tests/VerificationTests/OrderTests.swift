import AppAttest
import Cryptography
import Expectations
import KeyStore
import RequestBinding
import Rules
import SoftwareAuthenticator
import Testing
import Verification

/// What can be wrong with one request at the same time, in the order in which it is reported.
enum Fault: Int, CaseIterable, Sendable {
    case assertionMissing, challengeMissing, keyIDMalformed, digestMissing, keyUnknown
    case signature, otherApp, environment, length, counter, challengeUnknown, category, version

    var refusal: Refusal {
        switch self {
        case .assertionMissing: .assertionMissing
        case .challengeMissing: .challengeMissing
        case .keyIDMalformed: .assertionMalformed
        case .digestMissing: .digestMissing
        case .keyUnknown: .keyUnknown
        case .signature: .signatureMismatch
        case .otherApp: .appMismatch
        case .environment: .environmentMismatch
        case .length: .contentTooLarge
        case .counter: .counterReplayed
        case .challengeUnknown: .challengeUnknown
        case .category: .categoryRefused
        case .version: .versionRefused
        }
    }
}

@Suite struct OrderTests {
    /// Judges a request that has all these faults and no other.
    private func verdict(_ faults: Set<Fault>) throws -> Verdict {
        var trial = try Trial([Trial.policy { $0.builds = .appStore100 }])
        let shape = DeviceShape.iOS27(
            category: faults.contains(.category) ? .development : .appStore,
            bundleVersion: faults.contains(.version) ? "99" : "100"
        )
        let device = Trial.device(
            appID: faults.contains(.otherApp) ? Trial.otherAppID : Trial.appID,
            shape: shape
        )
        var key = trial.enrolledKey(
            device,
            as: faults.contains(.environment) ? .development : .production,
            counters: CounterState(
                highest: SignCounter(rawValue: faults.contains(.counter) ? 9 : 0),
                seen: faults.contains(.counter) ? .max : 0
            )
        )
        if faults.contains(.keyUnknown) { key = device.makeKey() }
        var request = try trial.request()
        if faults.contains(.challengeUnknown) { request.challenge = "AQEA" }
        let damage: AssertionDamage? = faults.contains(.signature) ? .signature : nil
        return try trial.send(request, by: &key, damage: damage) { wire in
            if faults.contains(.assertionMissing) { wire.remove("App-Attest-Assertion") }
            if faults.contains(.challengeMissing) { wire.remove("App-Attest-Challenge") }
            if faults.contains(.keyIDMalformed) { wire.set("App-Attest-Key-Id", "AAAA") }
            if faults.contains(.digestMissing) { wire.remove("Content-Digest") }
            if faults.contains(.length) { wire.framing = .stated(2 << 20) }
        }
    }

    @Test(arguments: Fault.allCases)
    func `of all faults from one on, that one is reported`(first: Fault) throws {
        let faults = Set(Fault.allCases.filter { $0.rawValue >= first.rawValue })
        try expectEqual(verdict(faults).outcome, .refuse(first.refusal))
    }

    @Test(arguments: Fault.allCases)
    func `each fault alone is reported`(fault: Fault) throws {
        try expectEqual(verdict([fault]).outcome, .refuse(fault.refusal))
    }

    @Test(arguments: Fault.allCases, Fault.allCases)
    func `of two faults the earlier is reported`(one: Fault, other: Fault) throws {
        let first = min(one.rawValue, other.rawValue)
        try expectEqual(verdict([one, other]).outcome, .refuse(Fault.allCases[first].refusal))
    }

    @Test func `without a fault it passes`() throws {
        try expectEqual(verdict([]).outcome, .pass)
    }

    @Test func `a spent challenge is reported behind the counter and before the category`() throws {
        var trial = try Trial([Trial.policy { $0.builds = .appStore100 }])
        let good = Trial.device(shape: .iOS27(category: .appStore, bundleVersion: "100"))
        var key = trial.enrolledKey(good)
        let request = try trial.request()
        try expectEqual(trial.send(request, by: &key).outcome, .pass)
        let replay = try trial.send(request, by: &key, damage: .counterRepeated)
        expectEqual(replay.outcome, .refuse(.counterReplayed))
        let bad = Trial.device(shape: .iOS27(category: .development, bundleVersion: "100"))
        var other = trial.enrolledKey(bad)
        try expectEqual(trial.send(request, by: &other).outcome, .refuse(.challengeSpent))
    }
}
