import AppAttest
import KeyStore
import OutboundCalls
package import Rules
import Signatures
import Synchronization
import Tokens
package import Verification

/// Google's Play Integrity: each proof of `kind: play-integrity`, whoever reads its tokens.
package final class IntegrityParty: ProofParty {
    private let line: ProofCalls<IntegrityCalls>
    private let access: AccessTokens

    package init(_ settings: [IntegritySettings], _ context: PartyContext) {
        line = ProofCalls(named: "integrity", settings.compactMap(\.service), context)
        access = AccessTokens(line) { context.wallSeconds }
    }

    package func checker(_ settings: IntegritySettings, _ apps: [AppPolicy]) -> any TokenChecker {
        let named = apps.compactMap { app in app.android.map { (app.id, $0.settings.signers) } }
        return IntegrityCheck(
            settings: settings,
            signers: Dictionary(named) { $0.union($1) },
            calls: line,
            access: access
        )
    }

    package func serves(_ settings: [IntegritySettings]) {
        line.loaded(settings.compactMap(\.service))
    }

    package func loaded(_ settings: [IntegritySettings]) {
        access.loaded(settings.compactMap(\.service))
    }

    package var calls: ProofCallFacts { line.facts }

    package func stop(_ ended: @escaping @Sendable () -> Void) { line.stop(ended) }
}

/// The access tokens by which the gateway asks Google: each is asked for once, by the first request
/// that needs it, and kept until shortly before its end.
final class AccessTokens: Sendable {
    typealias Answer = Result<AccessToken, PartyFault>
    private typealias Asker = @Sendable (Answer) -> Void

    private enum Pass {
        /// These wait for the answer.
        case asked([Asker])
        case given(AccessToken)
    }

    private let passes = Mutex<[ServiceAccount: Pass]>([:])
    private let calls: ProofCalls<IntegrityCalls>
    /// Seconds since 1970.
    private let wall: @Sendable () -> Int64

    init(_ calls: ProofCalls<IntegrityCalls>, wall: @escaping @Sendable () -> Int64) {
        (self.calls, self.wall) = (calls, wall)
    }

    /// Gives an access token, now or on the queue of the calls. No more callers wait than calls may
    /// wait for the service.
    func give(for service: IntegrityService, _ done: @escaping @Sendable (Answer) -> Void) {
        enum Step { case take(Answer), wait, ask }
        let (account, now) = (service.account, wall())
        let step = passes.withLock { passes -> Step in
            switch passes[account] {
            case .given(let token) where token.isGood(at: now): return .take(.success(token))
            case .asked(let askers):
                guard askers.count < service.calls.queue else {
                    return .take(.failure(.unanswered(.queueFull)))
                }
                passes[account] = .asked(askers + [done])
                return .wait
            case .given, nil:
                passes[account] = .asked([done])
                return .ask
            }
        }
        switch step {
        case .take(let answer): done(answer)
        case .wait: break
        case .ask:
            calls.send(IntegrityCall(service, .grant)) { [self] reply in
                do throws(PartyFault) {
                    take(.success(try AccessToken(reply, askedAt: now)), account)
                } catch {
                    take(.failure(error), account)
                }
            }
        }
    }

    private func take(_ answer: Answer, _ account: ServiceAccount) {
        let askers = passes.withLock { passes -> [Asker] in
            guard case .asked(let askers) = passes[account] else { return [] }
            if case .success(let token) = answer {
                passes[account] = .given(token)
            } else {
                passes[account] = nil
            }
            return askers
        }
        for asker in askers { asker(answer) }
    }

    /// Google has refused a token. Another call may have got a new one meanwhile.
    func drop(_ token: AccessToken, of service: IntegrityService) {
        passes.withLock { passes in
            guard case .given(token) = passes[service.account] else { return }
            passes[service.account] = nil
        }
    }

    /// A reload serves these. The tokens of other accounts are forgotten.
    func loaded(_ services: [IntegrityService]) {
        let accounts = Set(services.map(\.account))
        passes.withLock { passes in
            for case (let account, .given) in passes where !accounts.contains(account) {
                passes[account] = nil
            }
        }
    }
}

/// Checks the tokens of Play Integrity of one proof.
struct IntegrityCheck: TokenChecker {
    let settings: IntegritySettings
    /// The signing certificates of each app's policy, by package.
    let signers: [String: Set<[UInt8]>]
    let calls: ProofCalls<IntegrityCalls>
    let access: AccessTokens

    func check(
        _ token: ShownToken,
        _ found: @escaping @Sendable (TokenFinding) -> Void
    ) -> TokenChecking {
        let name = settings.name
        // `check` lets only `integrity` name such a proof, and that always binds.
        guard let binding = token.binding else { return .known(.unavailable) }
        let terms = IntegrityTerms(
            package: binding.package,
            signers: signers[binding.package] ?? [],
            keyID: binding.keyID.bytes,
            clientDataHash: binding.clientDataHash,
            ageMax: settings.ageMax
        )
        switch settings.decoder {
        case .local(let keys):
            let finding = IntegrityFinding(
                token.text,
                readBy: keys,
                terms,
                now: token.now.seconds
            )
            return taken(finding, found).map { .known($0) } ?? .later
        case .service(let service):
            guard IntegrityCall.isToken(token.text) else {
                return calls.known(.malformed, IntegrityRefusal.malformed.rawValue, of: name)
            }
            let client = TokenClient(binding.keyID, at: token.address)
            let shown = ProofCalls<IntegrityCalls>.Shown(token.text, of: name, client)
            if let checking = calls.begin(shown, service.calls.used) { return checking }
            let now = token.now.seconds
            ask(service, about: token.text, of: binding.package, mayRepeat: true) { answer in
                let finding: IntegrityFinding =
                    switch answer {
                    case .success(let reply): IntegrityFinding(reply, terms, now: now)
                    case .failure(let fault): .failed(fault)
                    }
                let isGood = if case .good = finding { true } else { false }
                calls.finish(shown, isSpent: isGood)
                if let finding = taken(finding, found) { found(finding) }
            }
            return .later
        }
    }

    /// Counts a finding, and spends a good token.
    ///
    /// - Returns: what is found of the token; `nil` where the store is asked.
    private func taken(
        _ finding: IntegrityFinding,
        _ found: @escaping @Sendable (TokenFinding) -> Void
    ) -> TokenFinding? {
        calls.count(finding.word, of: settings.name)
        calls.tell(finding.word, of: settings.name, next: finding.next)
        switch finding {
        case .good(let verdict, let use, let end):
            calls.spend(SpentToken(use, end: end), fresh: .verdict(verdict), found)
            return nil
        case .refused(let refusal):
            return switch refusal {
            case .malformed: .malformed
            case .invalid, .denied: .invalid
            case .expired, .notYet: .expired
            case .otherPackage, .otherSigner, .unbound, .otherRequest: .refused
            }
        case .failed: return .unavailable
        }
    }

    /// Asks Google. An access token that it does not accept is replaced once.
    private func ask(
        _ service: IntegrityService,
        about text: [UInt8],
        of package: String,
        mayRepeat: Bool,
        _ done: @escaping @Sendable (Result<CallReply, PartyFault>) -> Void
    ) {
        access.give(for: service) { answer in
            switch answer {
            case .failure(let fault): done(.failure(fault))
            case .success(let pass):
                let question = IntegrityCall.Question.token(text, package: package, pass)
                calls.send(IntegrityCall(service, question)) { reply in
                    guard case .answered(401, _, _) = reply, mayRepeat else {
                        return done(.success(reply))
                    }
                    access.drop(pass, of: service)
                    ask(service, about: text, of: package, mayRepeat: false, done)
                }
            }
        }
    }
}

extension IntegrityFinding {
    /// The next step for the operator; `nil` where there is nothing to mend.
    package var next: String? {
        switch self {
        case .good, .refused(.malformed), .refused(.otherPackage), .refused(.otherRequest),
            .refused(.otherSigner), .refused(.unbound), .refused(.expired):
            nil
        case .refused(.invalid): "if it is so for all tokens, see the proof's keys, or its url"
        case .refused(.denied):
            "if it is so for all tokens, link the account's project to the app in the Play Console"
        case .refused(.notYet): "see this machine's clock"
        case .failed(let fault):
            fault.next(
                credential: "see service_account of the proof, and whether the Play Integrity API "
                    + "is enabled",
                quota: "in the Play Console"
            )
        }
    }
}
