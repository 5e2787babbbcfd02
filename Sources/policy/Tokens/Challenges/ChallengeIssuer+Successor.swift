package import Encodings
internal import Synchronization

// After the hand-over this process asks its successor about each challenge.
extension ChallengeIssuer {
    /// Queries. The raw value is the first byte.
    private enum Question: UInt8 {
        case issue = 1
        case examine, spend, takeBack, firstTry
    }

    /// From now on the successor decides. It must have read ``state``, and this process may have
    /// issued and spent nothing since.
    package func handOver(to successor: any Successor) { self.successor.give(to: successor) }

    // MARK: Asking

    func issue(_ purpose: ChallengePurpose, now: Int64, by successor: any Successor) -> [UInt8] {
        var out = Self.writer(.issue)
        out.byte(purpose.rawValue)
        out.number(now)
        // A number of our own could equal one that the successor issues.
        return successor.ask(out.bytes) ?? deadText(purpose, now: now)
    }

    func examine(
        _ text: Span<UInt8>,
        _ purpose: ChallengePurpose,
        now: Int64,
        by successor: any Successor
    ) -> Examination {
        // Checked before it is sent: the text of an attacker may be long.
        guard UnverifiedChallenge(text: text) != nil else { return .unknown }
        var out = Self.writer(.examine)
        out.byte(purpose.rawValue)
        out.number(now)
        out.block(text.indices.map { text[$0] })
        let answer = successor.ask(out.bytes).flatMap { try? Self.examination($0) }
        return answer ?? .unknown
    }

    func spend(_ serial: ChallengeSerial, by successor: any Successor) -> Spending {
        switch ask(.spend, serial, successor) {
        case 0: .spent
        case 1: .spentBefore
        default: .noRoom
        }
    }

    func takeBack(_ serial: ChallengeSerial, by successor: any Successor) {
        _ = ask(.takeBack, serial, successor)
    }

    func isFirstTry(of serial: ChallengeSerial, by successor: any Successor) -> Bool {
        ask(.firstTry, serial, successor) == 1
    }

    private func ask(
        _ question: Question,
        _ serial: ChallengeSerial,
        _ successor: any Successor
    ) -> UInt8? {
        var out = Self.writer(question)
        serial.write(to: &out)
        return successor.ask(out.bytes)?.first
    }

    private static func writer(_ question: Question) -> ByteWriter {
        var out = ByteWriter()
        out.byte(question.rawValue)
        return out
    }

    private static func examination(_ answer: [UInt8]) throws(ByteReader.Fault) -> Examination {
        var answer = ByteReader(answer)
        switch try answer.byte() {
        case 0: return .valid(try ChallengeSerial(from: &answer))
        case 2: return .expired
        case 3: return .spent
        case 4: return .foreign
        default: return .unknown
        }
    }

    // MARK: Answering

    /// Answers a query of the predecessor.
    ///
    /// - Returns: `nil` when the query is not about challenges.
    package func answer(_ question: [UInt8]) -> [UInt8]? {
        var question = ByteReader(question)
        do throws(ByteReader.Fault) {
            guard let kind = Question(rawValue: try question.byte()) else { return nil }
            let answer = try answer(kind, &question)
            try question.end()
            return answer
        } catch {
            return nil
        }
    }

    private func answer(
        _ kind: Question,
        _ question: inout ByteReader
    ) throws(ByteReader.Fault) -> [UInt8] {
        switch kind {
        case .issue, .examine:
            guard let purpose = ChallengePurpose(rawValue: try question.byte()) else {
                throw ByteReader.Fault()
            }
            let now = try question.number()
            guard kind == .examine else { return issue(purpose, now: now) }
            let text = try question.block(max: 256)
            return Self.bytes(examine(text.span, purpose: purpose, now: now))
        case .spend:
            switch spend(try ChallengeSerial(from: &question)) {
            case .spent: return [0]
            case .spentBefore: return [1]
            case .noRoom: return [2]
            }
        case .takeBack:
            takeBack(try ChallengeSerial(from: &question))
            return [0]
        case .firstTry: return [isFirstTry(of: try ChallengeSerial(from: &question)) ? 1 : 0]
        }
    }

    private static func bytes(_ examination: Examination) -> [UInt8] {
        var out = ByteWriter()
        switch examination {
        case .valid(let serial):
            out.byte(0)
            serial.write(to: &out)
        case .unknown: out.byte(1)
        case .expired: out.byte(2)
        case .spent: out.byte(3)
        case .foreign: out.byte(4)
        }
        return out.bytes
    }
}

/// Holds the successor, once there is one. Each request asks it first; before the hand-over that
/// costs one atomic load.
package struct SuccessorPlace: ~Copyable, Sendable {
    private let successor = Mutex<(any Successor)?>(nil)
    private let isTaken = Atomic(false)

    package init() {}

    /// The successor; `nil` before the hand-over.
    package var holder: (any Successor)? {
        guard isTaken.load(ordering: .acquiring) else { return nil }
        return successor.withLock { $0 }
    }

    package func give(to successor: any Successor) {
        self.successor.withLock { $0 = successor }
        isTaken.store(true, ordering: .releasing)
    }
}
