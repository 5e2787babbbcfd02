import KeyStore
package import Rules
import SettingsReading
import Signatures
package import Verification

/// Tests for people, each of which is a proof of `kind: siteverify`.
package final class SiteverifyParty: ProofParty {
    private let line: ProofCalls<SiteverifyCalls>

    package init(_ settings: [SiteverifySettings], _ context: PartyContext) {
        line = ProofCalls(named: "siteverify", settings, context)
    }

    package func checker(_ settings: SiteverifySettings, _ apps: [AppPolicy]) -> any TokenChecker {
        SiteverifyCheck(settings: settings, calls: line)
    }

    package func serves(_ settings: [SiteverifySettings]) { line.loaded(settings) }

    package var calls: ProofCallFacts { line.facts }

    package func stop(_ ended: @escaping @Sendable () -> Void) { line.stop(ended) }
}

/// Checks the tokens of one test for people: asks its service about them.
struct SiteverifyCheck: TokenChecker {
    /// Seconds for which the store remembers a token. The services take one for some minutes.
    private static let lifetime: Int64 = 3_600

    let settings: SiteverifySettings
    let calls: ProofCalls<SiteverifyCalls>

    func check(
        _ token: ShownToken,
        _ found: @escaping @Sendable (TokenFinding) -> Void
    ) -> TokenChecking {
        let name = settings.name
        guard SiteverifyCall.isToken(token.text) else {
            return calls.known(.malformed, "malformed", of: name)
        }
        let client = TokenClient(nil, at: token.address)
        let shown = ProofCalls<SiteverifyCalls>.Shown(token.text, of: name, client)
        if let checking = calls.begin(shown, settings.calls.used) { return checking }
        let call = SiteverifyCall(
            proof: name,
            token: token.text,
            address: token.address,
            timeout: settings.calls.timeout
        )
        let end = token.now.seconds + Self.lifetime
        calls.send(call) { reply in
            let verdict = SiteverifyVerdict(reply, settings)
            calls.finish(shown, isSpent: verdict == .good)
            calls.count(verdict.word, of: name)
            guard verdict == .good else {
                calls.tell(verdict.word, of: name, next: verdict.next)
                return found(TokenFinding(verdict))
            }
            calls.spend(SpentToken(shown.digest, end: end), fresh: .good, found)
        }
        return .later
    }
}

extension TokenFinding {
    fileprivate init(_ verdict: SiteverifyVerdict) {
        self =
            switch verdict {
            case .good: .good
            case .failed: .unavailable
            case .refused(let refusal):
                switch refusal {
                case .invalid, .call, .otherKey, .browser, .unknownCode: .invalid
                case .expired: .expired
                case .used, .expiredOrUsed: .spent
                case .hostname, .action, .score, .noScore: .refused
                }
            }
    }
}

extension SiteverifyVerdict {
    /// The next step for the operator; `nil` where there is nothing to mend.
    package var next: String? {
        switch self {
        case .good: nil
        case .refused(let refusal):
            switch refusal {
            case .call: "if it is so for all tokens, see url, site_key and action of the proof"
            case .noScore: "take out min_score and max_score: the key gives no score"
            case .unknownCode: "see what the service's documents say of new codes"
            case .invalid, .expired, .used, .expiredOrUsed, .browser, .otherKey, .hostname,
                .action, .score:
                nil
            }
        case .failed(let fault):
            fault.next(
                credential: "see secret_file of the proof: the service does not accept it",
                quota: "at the service"
            )
        }
    }
}
