import OutboundCalls

extension IntegritySettings {
    /// Tokens that this machine decodes need no service.
    package func asking(_ trial: PartyTrial) -> PartyTrial.Asking? {
        guard let service else { return nil }
        return { found in service.ask(trial, found) }
    }
}

extension IntegrityService {
    /// Asks Google for an access token, and then about the token.
    fileprivate func ask(
        _ trial: PartyTrial,
        _ found: @escaping @Sendable (PartyTrial.Finding) -> Void
    ) {
        let app = trial.androidApp
        send(.grant, in: trial) { reply in
            do throws(PartyFault) {
                let access = try AccessToken(reply, askedAt: trial.now)
                send(.token(PartyTrial.token, package: app, access), in: trial) { reply in
                    found(finding(IntegrityFinding(ofTrial: reply), app))
                }
            } catch {
                found(finding(.failed(error), app))
            }
        }
    }

    private func send(
        _ question: IntegrityCall.Question,
        in trial: PartyTrial,
        _ done: @escaping @Sendable (CallReply) -> Void
    ) {
        let call = IntegrityCall(self, question)
        trial.send(call, of: IntegrityCalls([self]), within: calls.timeout, done)
    }

    private func finding(_ found: IntegrityFinding, _ app: String) -> PartyTrial.Finding {
        let name = "\(self.name): Play Integrity"
        switch found {
        case .refused(.denied):
            return .warning(
                "\(name) does not read tokens of \(app) for this service account",
                next: found.next ?? "see service_account of the proof"
            )
        case .refused, .good: return .ok("\(name) answers, and accepts the service account")
        case .failed:
            return .error(
                "\(name) can't be asked: \(found.word)",
                next: found.next ?? PartyTrial.seeDown
            )
        }
    }
}
