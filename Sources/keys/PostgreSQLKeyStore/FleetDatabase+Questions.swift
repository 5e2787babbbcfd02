package import KeyStore

// What an operator at one gateway asks of all. It costs nothing while no operator asks, but a row
// of each gateway in a minute.
extension FleetDatabase {
    /// The most bytes of an answer.
    package static let answerBytesMax = 512 << 10
    /// The most questions that a gateway reads at once, the latest.
    static let questionsMax: Int64 = 16
    /// The most rows that are read for an operator; a gateway may have two.
    private static let answersMax: Int64 = 128
    /// The time in which a question is answered, in seconds.
    private static let questionSeconds: Int64 = 10
    /// The time for which an answer about one name is kept, in seconds.
    private static let namedSeconds: Int64 = 60

    /// Asks the other gateways, which are notified.
    package func ask(
        _ about: FleetQuestion.Subject,
        by instance: Int64
    ) throws(JournalError) -> FleetQuestion {
        let rows = try link.ask([
            DatabaseStatement(
                """
                INSERT INTO fleet_questions (asker, about, ends_at)
                VALUES ($1, $2, \(Self.now) + $3) RETURNING id
                """,
                [.number(instance), .text(about.text), .number(Self.questionSeconds)]
            ), DatabaseStatement("NOTIFY \(ChangeFollower.orders)"),
        ])
        guard let row = rows.first?.first else {
            throw JournalError.damaged("a statement without an answer")
        }
        return FleetQuestion(id: try row.present(0), about: about)
    }

    /// Whether gateways that were heard of lately have still to answer.
    package func awaits(
        _ question: FleetQuestion,
        by instance: Int64
    ) throws(JournalError) -> Bool {
        let rows = try link.ask([
            DatabaseStatement(
                """
                SELECT 1 FROM gateways WHERE instance <> $1 AND standing <> '\(FleetMember.ended)'
                    AND seen_at >= \(Self.now) - \(Self.silenceSeconds) AND NOT EXISTS (
                        SELECT 1 FROM fleet_answers WHERE kind = $2 AND question >= $3
                            AND fleet_answers.instance = gateways.instance)
                LIMIT 1
                """,
                [.number(instance), .text(question.kind), .number(question.id)]
            )
        ])
        return (rows.first?.count ?? 0) > 0
    }

    /// The other gateways, with what each has said.
    package func answers(
        to question: FleetQuestion,
        by instance: Int64
    ) throws(JournalError) -> [FleetAnswer] {
        let rows = try link.ask([
            DatabaseStatement(
                """
                SELECT gateways.instance, gateways.name, gateways.standing,
                    CASE WHEN kind = $2 THEN question ELSE 0 END, \(Self.now) - written_at, answer
                FROM gateways LEFT JOIN fleet_answers
                    ON fleet_answers.instance = gateways.instance AND kind IN ($2, $3)
                WHERE gateways.instance <> $1
                ORDER BY gateways.name, gateways.instance, kind = $2 DESC LIMIT $4
                """,
                [
                    .number(instance), .text(question.kind), .text(question.about.lastKind),
                    .number(Self.answersMax),
                ]
            )
        ])
        guard let found = rows.first else {
            throw JournalError.damaged("a statement without an answer")
        }
        var answers: [FleetAnswer] = []
        var last: Int64?
        for row in found {
            let instance: Int64 = try row.present(0)
            // The answer about a name comes before what was said unasked.
            guard instance != last, let name = row.gatewayName(1) else { continue }
            last = instance
            let bytes = row.bytes(5)
            let answered: Int64 = try row.present(3)
            answers.append(
                FleetAnswer(
                    name: name,
                    hasEnded: row.text(2) == FleetMember.ended,
                    isToQuestion: answered >= question.id,
                    age: bytes == nil ? 0 : max(try row.present(4), 0),
                    bytes: bytes
                )
            )
        }
        return answers
    }

    /// Answers a question, or says unasked what others would ask.
    ///
    /// - bytes: at most ``answerBytesMax``.
    package func answer(
        _ question: FleetQuestion,
        _ bytes: [UInt8],
        by instance: Int64
    ) throws(JournalError) {
        let isNamed = question.kind != question.about.lastKind
        let seconds = isNamed ? Self.namedSeconds : Self.memberSeconds
        _ = try link.ask([
            DatabaseStatement(
                """
                INSERT INTO fleet_answers (kind, instance, question, written_at, ends_at, answer)
                VALUES ($1, $2, $3, \(Self.now), \(Self.now) + $4, $5)
                ON CONFLICT (kind, instance) DO UPDATE SET
                    question = greatest(fleet_answers.question, $3), written_at = \(Self.now),
                    ends_at = \(Self.now) + $4, answer = $5
                """,
                [
                    .text(question.kind), .number(instance), .number(question.id),
                    .number(seconds), .bytes(bytes),
                ]
            )
        ])
    }
}

/// A question of an operator to all gateways.
package struct FleetQuestion: Sendable {
    /// What it is about.
    package enum Subject: Hashable, Sendable {
        case report
        /// The latest refusals.
        case refusals
        /// The refusals that a name matches.
        case named(String)

        fileprivate var text: String {
            switch self {
            case .report: "report"
            case .refusals: "refusals"
            case .named(let name): "why " + name
            }
        }

        fileprivate init?(_ text: String) {
            switch text {
            case "report": self = .report
            case "refusals": self = .refusals
            case _ where text.hasPrefix("why "): self = .named(String(text.dropFirst(4)))
            default: return nil
            }
        }

        /// The kind of the rows that a gateway which does not answer has left.
        fileprivate var lastKind: String {
            switch self {
            case .report: "report"
            case .refusals, .named: "refusals"
            }
        }
    }

    /// 0 for what a gateway says unasked.
    package let id: Int64
    package let about: Subject

    package init(id: Int64, about: Subject) { (self.id, self.about) = (id, about) }

    /// `nil` for what this version can't answer.
    init?(_ id: Int64, _ text: String) {
        guard let about = Subject(text) else { return nil }
        self.init(id: id, about: about)
    }

    /// The kind of its answers' rows.
    fileprivate var kind: String { about.text }
}

/// What a gateway has said.
package struct FleetAnswer: Sendable {
    /// The gateway's name.
    package let name: String
    package let hasEnded: Bool
    /// Whether it answers the question; otherwise it was said before.
    package let isToQuestion: Bool
    /// Seconds since it was said.
    package let age: Int64
    /// `nil` where it has said nothing.
    package let bytes: [UInt8]?
}
