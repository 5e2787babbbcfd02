import Foundation
import LoopbackSockets

/// One case with one client: does the steps and judges what comes of them.
struct CaseRun {
    private let proving: ProvingCase
    private let stand: ProvingStand
    private let channel: DriverChannel
    private var clients: DrivenClients
    private var misses: [ProvingReport.Miss] = []
    private let began: ProvingLedger.Mark

    /// Seconds in which the middle comes to rest after the last step.
    private static let settlingMax = 5.0
    /// The most misses that are kept.
    private static let missesMax = 20

    /// - host: by what name the driver reaches this machine.
    init(_ proving: ProvingCase, on stand: ProvingStand, by channel: DriverChannel, host: String) {
        (self.proving, self.stand, self.channel) = (proving, stand, channel)
        let places = DrivenClients.Places(
            gateway: "http://\(host):\(stand.middlePort)",
            device: "http://\(host):\(stand.devicePort)"
        )
        clients = DrivenClients(of: proving, places: places)
        began = stand.ledger.now
    }

    /// Runs it.
    ///
    /// - Returns: what was not as expected.
    mutating func run() -> [ProvingReport.Miss] {
        do throws(ToolError) {
            for step in proving.steps { try take(step) }
        } catch {
            for told in clients.stopAll() where !channel.isClosed { _ = try? ask(told) }
            let expected = "each step is done"
            misses.append(.init(step: "", expected: expected, seen: error.text, line: 0))
            return misses
        }
        stand.ledger.settle(seconds: Self.settlingMax)
        let outcome = ProvingExpectation.Outcome(seen: stand.ledger.seen(since: began))
        judge(proving.expected, by: outcome, in: "the whole case")
        for told in clients.stopAll() { _ = try? ask(told) }
        return Array(misses.prefix(Self.missesMax))
    }

    private mutating func judge(
        _ expected: [ProvingExpectation],
        by outcome: ProvingExpectation.Outcome,
        in step: String
    ) {
        misses += expected.compactMap { $0.miss(outcome, in: proving, step: step) }
    }

    // MARK: Steps

    private mutating func take(_ step: CaseStep) throws(ToolError) {
        if case .until(let expected, let seconds) = step.deed {
            return wait(until: expected, within: seconds, in: step)
        }
        let mark = stand.ledger.now
        let start = ContinuousClock.now
        if try takeHere(step.deed) { return }
        var outcome = ProvingExpectation.Outcome(seen: SeenTraffic())
        for told in clients.steps(for: step, challenge: stand.middle.challenge) {
            outcome.answers = try result(of: told, in: step)
        }
        outcome.seconds = (ContinuousClock.now - start) / .seconds(1)
        outcome.seen = stand.ledger.seen(since: mark)
        if case .send(let sending) = step.deed {
            guard outcome.answers.count == sending.total else {
                let count = "\(sending.total) requests, \(outcome.answers.count) answers"
                throw ToolError("line \(step.line): \(count)")
            }
        }
        judge(step.expected, by: outcome, in: "line \(step.line): \(step.text)")
    }

    /// What the app got, as the driver says it.
    private func result(
        of told: [String: Any],
        in step: CaseStep
    ) throws(ToolError) -> [ClientAnswer] {
        let result: StepResult
        do {
            result = try JSONDecoder().decode(StepResult.self, from: try ask(told))
        } catch let error as ToolError {
            throw error
        } catch {
            throw ToolError("line \(step.line): the result is none: \(error)")
        }
        if let error = result.error {
            throw ToolError("line \(step.line): the driver can't do it: \(error)")
        }
        let answers = result.answers ?? []
        if let strange = answers.first(where: { ClientOutcome(rawValue: $0.outcome) == nil }) {
            throw ToolError("line \(step.line): “\(strange.outcome)” is no outcome")
        }
        return answers
    }

    private func ask(_ told: [String: Any]) throws(ToolError) -> Data {
        try channel.ask(ProvingServer.json(told))
    }

    private mutating func wait(
        until expected: [ProvingExpectation],
        within seconds: Double,
        in step: CaseStep
    ) {
        let isTrue: (SeenTraffic) -> Bool = { seen in
            let outcome = ProvingExpectation.Outcome(seen: seen)
            return expected.allSatisfy { $0.bounds.contains($0.measure.number(of: outcome)) }
        }
        guard !stand.ledger.wait(seconds: seconds, since: began, until: isTrue) else { return }
        let outcome = ProvingExpectation.Outcome(seen: stand.ledger.seen(since: began))
        judge(
            expected,
            by: outcome,
            in: "line \(step.line): within \(ExpectedRange.text(seconds)) s"
        )
    }

    /// Does a step that needs no client.
    ///
    /// - Returns: whether it was one.
    private func takeHere(_ deed: CaseStep.Deed) throws(ToolError) -> Bool {
        switch deed {
        case .gateway(.restart): try stand.gateway.restart()
        case .gateway(.wipe): try stand.gateway.restart(wipingStore: true)
        case .gateway(.stop): stand.gateway.kill()
        case .gateway(.start): try stand.gateway.start()
        case .gateway(.revoke): try stand.revokeKeys()
        case .rules(let rules): try stand.setRules(rules)
        case .middle(let faults): stand.middle.faults.replace(by: faults)
        case .origin(let faults): stand.origin.faults.replace(by: faults)
        case .device(let faults): stand.device.faults.replace(by: faults)
        case .loseKeys: stand.device.forgetKeys()
        case .wait(let seconds): stand.ledger.pause(seconds: seconds)
        case .start, .send, .clock, .prewarm, .reset, .signOut, .stop, .until: return false
        }
        return true
    }
}

extension CaseStep {
    /// For people.
    var text: String {
        switch deed {
        case .send(let sending):
            let count = sending.count == 1 ? "" : "\(sending.count) × "
            return "\(count)\(sending.method) \(sending.path)"
        case .start(let start): return "start, \(start.state.rawValue)"
        case .clock(let seconds): return "\(ExpectedRange.text(seconds)) s later"
        case .prewarm: return "prewarm"
        case .reset: return "reset"
        case .signOut: return "sign out"
        case .stop: return "stop"
        default: return "a step"
        }
    }
}
