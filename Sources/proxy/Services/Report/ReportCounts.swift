package import AppAttest
package import HTTPWire
package import KeyStore
package import Rules
package import Telemetry
package import Verification

/// The counts of an event loop for reports since the last query.
///
/// A request that began before a reload ends with the rule that it began with. By then another rule
/// may have that rule's number. So rules are identified by their ids.
package struct ReportCounts: Sendable {
    /// The counts of one rule.
    package struct Entry: Sendable {
        package let rule: String
        package var counts: RuleCounts
    }

    private var ids: [String] = []
    /// By the rule's number; `nil` where nothing was counted.
    private var current: [RuleCounts?] = []
    /// The counts of rules that are no longer served: the rules that reloads have removed since the
    /// last ``take()``.
    private var former: [Entry] = []
    /// The hash of installs and addresses. A change does not hash again what was counted before.
    package var hash = InstallHash.ofProcess

    package init(_ rules: RuleSet) { serve(rules) }

    /// Sets the rules that requests have from now on.
    package mutating func serve(_ rules: RuleSet) {
        former = take()
        ids = rules.rules.map(\.id)
        current = Array(repeating: nil, count: ids.count)
    }

    /// Counts a request that has ended, and its verdict where it has one.
    package mutating func add(_ request: ReportedRequest?, nanoseconds: UInt64, of rule: Rule) {
        guard ids.indices.contains(rule.index), ids[rule.index] == rule.id else {
            return addFormer(request, nanoseconds: nanoseconds, id: rule.id)
        }
        Self.add(request, nanoseconds: nanoseconds, by: hash, to: &current[rule.index])
    }

    /// Adds to the counts in place: they are large to copy.
    private static func add(
        _ request: ReportedRequest?,
        nanoseconds: UInt64,
        by hash: InstallHash,
        to counts: inout RuleCounts?
    ) {
        if counts == nil { counts = RuleCounts() }
        counts?.add(nanoseconds: nanoseconds)
        if let request { counts?.add(request, by: hash) }
    }

    private mutating func addFormer(
        _ request: ReportedRequest?,
        nanoseconds: UInt64,
        id: String
    ) {
        var counts = RuleCounts()
        counts.add(nanoseconds: nanoseconds)
        if let request { counts.add(request, by: hash) }
        Self.add(Entry(rule: id, counts: counts), to: &former)
    }

    private static func add(_ entry: Entry, to entries: inout [Entry]) {
        if let place = entries.firstIndex(where: { $0.rule == entry.rule }) {
            entries[place].counts.merge(entry.counts)
        } else {
            entries.append(entry)
        }
    }

    /// Hands over the counts, and resets them.
    package mutating func take() -> [Entry] {
        var taken = former
        former = []
        for place in current.indices {
            guard let counts = current[place] else { continue }
            Self.add(Entry(rule: ids[place], counts: counts), to: &taken)
            current[place] = nil
        }
        return taken
    }
}

/// What a report counts of a request with a verdict.
package struct ReportedRequest: Sendable {
    /// The answer that `enforce` would have given.
    package enum Fate: Sendable {
        case forwarded
        /// It would have been refused at each share that includes this bucket.
        case refused(Bucket)
    }

    package let outcome: Verdict.Outcome
    /// How it has proved itself; `nil` where it has not.
    package let proof: ProofKind?
    /// Whether Google Play's word meets the rule's `integrity`; `nil` where none was asked for.
    package let meetsIntegrity: Bool?
    package let environment: KeyEnvironment?
    package let build: AppBuild
    /// The system that the client claims.
    package let system: ClaimedSystem?
    /// Whether a key has signed it.
    package let isSigned: Bool
    /// The named key, where it is enrolled here.
    package let install: KeyID?
    /// The client's address, which counts as the install where that is not known.
    package let address: IPAddress
    package let fate: Fate
    /// Whether the request was really refused.
    package let isRefused: Bool

    package init(
        _ verdict: Verdict,
        _ claims: ClientClaims,
        address: IPAddress,
        fate: Fate,
        isRefused: Bool
    ) {
        outcome = verdict.outcome
        proof = outcome == .pass ? verdict.proof : nil
        meetsIntegrity = verdict.integrity?.isMet
        environment = verdict.environment
        build = AppBuild(signed: verdict.appVersion, claimed: claims.version)
        system = claims.system
        isSigned = verdict.signer != nil
        install = verdict.environment == nil ? nil : verdict.keyID
        self.address = address
        self.fate = fate
        self.isRefused = isRefused
    }
}

/// The classes of verdicts in a report. The raw value is the word in reports: add, do not rename.
package enum VerdictClass: String, CaseIterable, Sendable {
    /// The verdict is `pass`.
    case verified
    /// The request had no proof.
    case missing
    /// The app says that it can't attest.
    case unsupported
    /// A check of the proof failed.
    case invalid
    /// A party that is needed has failed.
    case errors
    /// A CORS preflight that the rule forwards unjudged.
    case preflight

    package init(_ outcome: Verdict.Outcome) {
        self =
            switch outcome {
            case .pass: .verified
            case .refuse(.assertionMissing), .refuse(.proofMissing): .missing
            case .refuse(.unsupported): .unsupported
            case .refuse(.preflight): .preflight
            case .refuse: .invalid
            case .failure: .errors
            }
    }
}
