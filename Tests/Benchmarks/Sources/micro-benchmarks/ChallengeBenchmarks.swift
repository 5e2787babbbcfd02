import Tokens

/// Challenges from issue to spending.
enum ChallengeBenchmarks {
    static var all: [() -> [Benchmark]] { [{ [issue, examine, spend] }] }

    private static let now: Int64 = 1_790_000_000

    private static var issue: Benchmark {
        let issuer = ChallengeIssuer()
        return Benchmark(group: "challenge", name: "issued", countMax: 50_000) { _ in
            !issuer.issue(.assertion, now: now).isEmpty
        }
    }

    private static var examine: Benchmark {
        let issuer = ChallengeIssuer()
        let text = issuer.issue(.assertion, now: now)
        return Benchmark(group: "challenge", name: "recognised") { _ in
            guard case .valid = issuer.examine(text.span, purpose: .assertion, now: now) else {
                return false
            }
            return true
        }
    }

    private static var spend: Benchmark {
        let issuer = ChallengeIssuer()
        var serials: [ChallengeSerial] = []
        return Benchmark(
            group: "challenge",
            name: "spent",
            countMax: 50_000,
            prepare: { count in serials = (0..<count).compactMap { _ in serial(issuer) } },
            run: { issuer.spend(serials[$0]) == .spent }
        )
    }

    private static func serial(_ issuer: ChallengeIssuer) -> ChallengeSerial? {
        let text = issuer.issue(.assertion, now: now)
        guard
            case .valid(let serial) = issuer.examine(text.span, purpose: .assertion, now: now)
        else { return nil }
        return serial
    }
}
