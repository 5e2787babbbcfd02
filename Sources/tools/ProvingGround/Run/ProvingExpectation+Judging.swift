// What expectations say of what was seen.
extension ProvingExpectation {
    /// What a step or a case came to.
    struct Outcome {
        var seen: SeenTraffic
        var answers: [ClientAnswer] = []
        var seconds = 0.0
    }

    /// What is wrong; `nil` where all is as expected.
    func miss(_ outcome: Outcome, in proving: ProvingCase, step: String) -> ProvingReport.Miss? {
        let number = measure.number(of: outcome)
        guard !bounds.contains(number) else { return nil }
        var saw = ExpectedRange.text(number)
        if let more = measure.detail(of: outcome) { saw += " (\(more))" }
        return ProvingReport.Miss(
            step: step,
            expected: "\(measure.text): \(bounds.text)",
            seen: saw,
            line: line
        )
    }
}

extension ProvingMeasure {
    /// For people.
    var text: String {
        switch self {
        case .count(let count): count.text
        case .refusals(let reason): "refusals \(reason)"
        case .answers(let outcome, let status): "answers \(Self.text(outcome, status))"
        case .otherAnswers(let outcome, let status):
            "answers other than \(Self.text(outcome, status))"
        case .seconds: "seconds"
        case .answerField(let name, let value): "answers with \(name): \(value)"
        case .tokens(let names): "answers with the tokens \(names.joined(separator: ", "))"
        case .seen(let query): query.text
        }
    }

    private static func text(_ outcome: String, _ status: Int?) -> String {
        status.map { "\(outcome) \($0)" } ?? outcome
    }

    func number(of outcome: ProvingExpectation.Outcome) -> Double {
        switch self {
        case .count(let count): Double(count.number(in: outcome.seen))
        case .refusals(let reason):
            Double(outcome.seen.requests.count { $0.reason == reason })
        case .answers(let word, let status):
            Double(outcome.answers.count { $0.isA(word, status) })
        case .otherAnswers(let word, let status):
            Double(outcome.answers.count { !$0.isA(word, status) })
        case .seconds: outcome.seconds
        case .answerField(let name, let value):
            Double(
                outcome.answers.count { answer in
                    guard let found = answer[name] else { return false }
                    return value == "any" || value == found
                }
            )
        case .tokens(let names):
            Double(outcome.answers.count { Set($0.tokens ?? []) == Set(names) })
        case .seen(let query): Double(query.number(in: outcome.seen))
        }
    }

    /// What helps beside the number.
    func detail(of outcome: ProvingExpectation.Outcome) -> String? {
        switch self {
        case .answers, .otherAnswers, .answerField, .tokens:
            guard !outcome.answers.isEmpty else { return nil }
            let counts = outcome.answers.reduce(into: [:]) { $0[$1.text, default: 0] += 1 }
            return counts.sorted { $0.value > $1.value }.prefix(4)
                .map { "\($0.value) × \($0.key)" }.joined(separator: ", ")
        case .count(.repeats):
            let orders = ProvingMeasure.Count.orders(in: outcome.seen).filter { $0.value > 1 }
            return orders.keys.sorted().prefix(3).joined(separator: ", ")
        default: return nil
        }
    }
}

extension ProvingMeasure.Count {
    func number(in seen: SeenTraffic) -> Int {
        let requests = seen.requests.filter { $0.place == .app }
        switch self {
        case .attestations:
            // A phone attests a key as it makes it.
            return seen.calls.count { call in
                call.error == nil
                    && (call.kind == .attest || (call.kind == .make && seen.isAndroid))
            }
        case .keys: return seen.calls.count { $0.kind == .make && $0.error == nil }
        case .signatures: return seen.calls.count { $0.kind == .sign && $0.error == nil }
        case .deviceTokens: return seen.calls.count { $0.kind == .deviceToken && $0.error == nil }
        case .challenges: return seen.requests.count { $0.place == .challenges }
        case .enrolments: return seen.requests.count { $0.place == .keys }
        case .sessions: return seen.requests.count { $0.place == .sessions }
        case .plans: return seen.requests.count { $0.place == .plan }
        case .requests: return requests.count
        case .proofs: return requests.count(where: \.hasAssertion)
        case .sessionProofs: return requests.count(where: \.hasSession)
        case .unproven: return requests.count { !$0.hasAssertion && !$0.hasSession }
        case .unsupported: return requests.count { $0["App-Attest-Unsupported"] != nil }
        case .executions: return seen.executions.count
        case .repeats: return Self.orders(in: seen).values.reduce(0) { $0 + $1 - 1 }
        }
    }

    /// Methods that may run again (RFC 9110 §9.2.2).
    private static let idempotent: Set<String> = [
        "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE",
    ]

    /// How often the origin ran each order: what may not run again, and has no `Idempotency-Key`.
    static func orders(in seen: SeenTraffic) -> [String: Int] {
        seen.executions.reduce(into: [:]) { orders, execution in
            guard !idempotent.contains(execution.method),
                (execution["Idempotency-Key"] ?? "").isEmpty
            else { return }
            orders["\(execution.method) \(execution.target)", default: 0] += 1
        }
    }
}

extension SeenQuery {
    func number(in seen: SeenTraffic) -> Int {
        if isAtOrigin {
            return seen.executions.count { matches($0.method, $0.target, fields: $0.fields) }
        }
        return seen.requests.count { request in
            (status == nil || request.status == status)
                && matches(request.method, request.target, fields: request.fields)
        }
    }

    private func matches(
        _ method: String,
        _ target: String,
        fields: [(name: String, value: String)]
    ) -> Bool {
        guard self.method == nil || self.method == method,
            place.matches(path: String(target.prefix { $0 != "?" }))
        else { return false }
        func value(_ name: String) -> String? {
            fields.first { $0.name.lowercased() == name.lowercased() }?.value
        }
        return with.allSatisfy { wanted in
            guard let found = value(wanted.name) else { return false }
            return wanted.value == "any" || wanted.value == found
        } && without.allSatisfy { value($0) == nil }
    }
}
