import OutboundCalls

extension SiteverifySettings {
    package func asking(_ trial: PartyTrial) -> PartyTrial.Asking? {
        { found in
            let call = SiteverifyCall(
                proof: name,
                token: PartyTrial.token,
                address: nil,
                timeout: calls.timeout
            )
            trial.send(call, of: SiteverifyCalls([self]), within: calls.timeout) { reply in
                found(finding(SiteverifyVerdict(reply, self)))
            }
        }
    }

    private func finding(_ verdict: SiteverifyVerdict) -> PartyTrial.Finding {
        let name = "\(self.name): \(service.rawValue)"
        switch verdict {
        case .refused(.call):
            return .warning(
                "\(name) calls a question malformed",
                next: verdict.next ?? "see url of the proof"
            )
        case .refused: return .ok("\(name) answers, and accepts the secret")
        case .good:
            return .error(
                "\(name) takes a token that it has not made",
                next: "use the secret of your site: this one is for tests, and every token passes"
            )
        case .failed:
            return .error(
                "\(name) can't be asked: \(verdict.word)",
                next: verdict.next ?? PartyTrial.seeDown
            )
        }
    }
}
