import ClientStreams
import HTTPWire
import Lanes
import RequestFlow
import Rules
import Services
import Verification

// What is remembered of a refusal, for `portcullis why`.
extension Exchange {
    /// Remembers why the request was refused, or would have been where its rule enforces.
    func remember() {
        switch record.outcome {
        case .refused, .notEnrolled, .malformed:
            guard let outcome = record.outcome else { return }
            remember(outcome, record.status > 0 ? .answered : .cutOff)
        // Failures of origins and of HTTP are in the log.
        case .failed, .fault, .done: break
        case nil:
            guard flow.rule.mode != .off, let verdict = flow.judgement.verdict?.ruling.verdict
            else { return }
            switch verdict {
            case .pass, .refuse(.preflight): break
            case .refuse(let refusal): remember(.refused(refusal), .forwarded)
            case .failure(let dependency): remember(.refused(dependency.refusal), .forwarded)
            }
        }
    }

    private func remember(_ outcome: LocalOutcome, _ fate: RefusalNote.Fate) {
        let asked = record.asked
        let finding = flow.judgement.verdict.map { ruling, enforcement in
            RefusalNote.Finding(ruling, isEnforced: enforcement == .enforced)
        }
        proxy.refusals.add(
            RefusalNote(
                at: lane.wallMilliseconds,
                id: record.id,
                trace: record.trace,
                client: account.address,
                asked: .init(method: asked.method, host: asked.host, path: asked.path),
                outcome: outcome,
                fate: fate,
                status: record.status,
                place: record.service.map { .endpoint($0) } ?? .rule(flow.rule.id, flow.rule.mode),
                finding: finding
            )
        )
    }
}
