import ConfigurationReading

// What a case's file expects.
extension CaseReader {
    private static let special = [
        "answers", "seconds", "refusals", "answer-fields", "tokens", "seen",
    ]

    private static let outcomes = ClientOutcome.allCases.map(\.rawValue)

    func expectations(_ reader: MappingReader, _ key: String) -> [ProvingExpectation] {
        guard let node = reader.node(key) else { return [] }
        let counts = ProvingMeasure.Count.allCases.map(\.rawValue)
        guard let inner = reader.inner(key, keys: counts + Self.special) else { return [] }
        var all: [ProvingExpectation] = []
        for count in ProvingMeasure.Count.allCases where inner.has(count.rawValue) {
            all += bounded(.count(count), inner, at: count.rawValue)
        }
        if inner.has("seconds") {
            all += bounded(.seconds, inner, at: "seconds")
        }
        if inner.has("answers") { all += answers(inner) }
        for member in members(inner, "refusals") {
            all += bounded(.refusals(member.key), inner, by: member)
        }
        for field in fields(inner, "answer-fields") {
            let line = inner.place(of: "answer-fields").line
            let name = field.name.lowercased()
            let measure = ProvingMeasure.answerField(name: name, value: field.value)
            all.append(ProvingExpectation(measure: measure, bounds: Self.some, line: line))
        }
        if inner.has("tokens") {
            let measure = ProvingMeasure.tokens(texts(inner, "tokens"))
            let line = inner.place(of: "tokens").line
            all.append(ProvingExpectation(measure: measure, bounds: Self.some, line: line))
        }
        if inner.has("seen") { all += seen(inner) }
        if all.isEmpty {
            log.error(node.place, reader.path(key), found: "nothing", use: "a measure")
        }
        return all
    }

    /// One or more.
    private static var some: ExpectedRange { ExpectedRange(least: 1, most: .infinity) }

    private func bounded(
        _ measure: ProvingMeasure,
        _ reader: MappingReader,
        at key: String
    ) -> [ProvingExpectation] {
        guard let bounds = bounds(reader, key) else { return [] }
        let line = reader.place(of: key).line
        return [ProvingExpectation(measure: measure, bounds: bounds, line: line)]
    }

    private static let boundsUse = "a number, or a range: 1...3, ...0.5, 2..."

    private func bounds(_ reader: MappingReader, _ key: String) -> ExpectedRange? {
        guard let text = text(reader, key) else { return nil }
        guard let bounds = ExpectedRange(text) else {
            reader.error(key, found: "\"\(text)\"", use: Self.boundsUse)
            return nil
        }
        return bounds
    }

    private func members(_ reader: MappingReader, _ key: String) -> [SourceNode.Member] {
        guard let node = reader.node(key) else { return [] }
        guard case .mapping(let members) = node.content else {
            reader.error(key, found: node.found, use: "a mapping")
            return []
        }
        return members
    }

    private func bounded(
        _ measure: ProvingMeasure,
        _ reader: MappingReader,
        by member: SourceNode.Member
    ) -> [ProvingExpectation] {
        guard case .text(let text) = member.value.content, let bounds = ExpectedRange(text) else {
            log.error(
                member.place,
                reader.path(member.key),
                found: member.value.found,
                use: Self.boundsUse
            )
            return []
        }
        return [ProvingExpectation(measure: measure, bounds: bounds, line: member.place.line)]
    }

    /// `answered 200` for all of them, or how many there are of each such text.
    private func answers(_ reader: MappingReader) -> [ProvingExpectation] {
        let line = reader.place(of: "answers").line
        if case .text(let text) = reader.node("answers")?.content {
            guard case .answers(let outcome, let status) = answer(text) else {
                reader.error("answers", found: "\"\(text)\"", use: Self.answersUse)
                return []
            }
            let others = ProvingMeasure.otherAnswers(outcome: outcome, status: status)
            let none = ExpectedRange(least: 0, most: 0)
            return [ProvingExpectation(measure: others, bounds: none, line: line)]
        }
        return members(reader, "answers").flatMap { member in
            guard let measure = answer(member.key) else {
                log.error(
                    member.place,
                    reader.path("answers"),
                    found: "\"\(member.key)\"",
                    use: Self.answersUse
                )
                return [ProvingExpectation]()
            }
            return bounded(measure, reader, by: member)
        }
    }

    private static var answersUse: String {
        "an outcome, and a status where one matters: \(outcomes.joined(separator: " | "))"
    }

    private func answer(_ text: String) -> ProvingMeasure? {
        let words = text.split(separator: " ")
        guard (1...2).contains(words.count), let outcome = words.first.map(String.init),
            Self.outcomes.contains(outcome)
        else { return nil }
        guard words.count == 2 else { return .answers(outcome: outcome, status: nil) }
        return Int(words[1]).map { .answers(outcome: outcome, status: $0) }
    }

    private func seen(_ reader: MappingReader) -> [ProvingExpectation] {
        let keys = ["at", "origin", "method", "status", "with", "without", "count"]
        return (reader.list("seen", of: "requests") ?? []).compactMap { node, path in
            guard let inner = MappingReader(node, path, keys: keys, log: log) else { return nil }
            inner.require("count", use: Self.boundsUse)
            var query = SeenQuery()
            if let at = text(inner, "at") {
                guard let place = FaultPlace(at) else {
                    let use = (FaultPlace.words + ["a path"]).joined(separator: " | ")
                    inner.error("at", found: "\"\(at)\"", use: use)
                    return nil
                }
                query.place = place
            }
            query.isAtOrigin = inner.flag("origin")?.value ?? false
            query.method = text(inner, "method")
            query.status = inner.integer("status", in: 100...599)?.value
            query.with = fields(inner, "with")
            query.without = texts(inner, "without")
            guard let bounds = bounds(inner, "count") else { return nil }
            return ProvingExpectation(measure: .seen(query), bounds: bounds, line: node.place.line)
        }
    }
}

extension ExpectedRange {
    init(least: Double, most: Double) { (self.least, self.most) = (least, most) }
}
