internal import AppAttest
internal import DeviceKey
package import Encodings
internal import RequestBinding

/// Queries. The raw value is the first byte; those of challenges and keys have lower ones.
private enum Question: UInt8 {
    case open = 64
    case find, admits, use
}

// After the hand-over this process asks its successor about each session and each number.
extension SessionTable {
    /// From now on the successor decides. It must have read ``state``, and nothing may have changed
    /// here since.
    package func handOver(to successor: any Successor) { succession.place.give(to: successor) }

    // MARK: Asking

    func open(
        _ keyID: KeyID,
        _ evidence: VerifiedEvidence,
        now: Int64,
        by successor: any Successor
    ) -> Opened {
        var out = Question.open.writer
        out.block(keyID.bytes)
        evidence.write(to: &out)
        out.number(now)
        // Without an answer the session counts as over: its client opens another.
        let id =
            successor.ask(out.bytes).flatMap(SessionID.init(bytes:))
            ?? SessionID(serial: 0, expiry: now, key: key)
        return Opened(id: id.text, secret: id.secret(under: key))
    }

    func find(_ id: SessionID, now: Int64, by successor: any Successor) -> Finding {
        var out = Question.find.writer
        out.block(id.bytes)
        out.number(now)
        let answer = successor.ask(out.bytes).flatMap { answer in try? finding(of: id, answer) }
        return answer ?? .unknown(.foreign)
    }

    private func finding(of id: SessionID, _ answer: [UInt8]) throws(ByteReader.Fault) -> Finding {
        var answer = ByteReader(answer)
        switch try answer.byte() {
        case 1: return .expired
        case 2:
            guard let keyID = KeyID(bytes: try answer.block(max: 32)) else {
                throw ByteReader.Fault()
            }
            let evidence = try VerifiedEvidence(from: &answer)
            try answer.end()
            // Its window stays empty: the successor has the one that decides.
            return .live(session(id, SequenceWindow(width: 1), keyID, evidence))
        case 3: return .unknown(.evicted)
        default: return .unknown(.foreign)
        }
    }

    // MARK: Answering

    /// Answers a query of the predecessor.
    ///
    /// - Returns: `nil` when the query is not about sessions.
    @Sendable package func answer(_ question: [UInt8]) -> [UInt8]? {
        var question = ByteReader(question)
        do throws(ByteReader.Fault) {
            guard let kind = Question(rawValue: try question.byte()) else { return nil }
            return try answer(kind, &question)
        } catch {
            return nil
        }
    }

    private func answer(
        _ kind: Question,
        _ question: inout ByteReader
    ) throws(ByteReader.Fault) -> [UInt8] {
        let subject = try question.block(max: SessionID.byteCount)
        if kind == .open {
            guard let keyID = KeyID(bytes: subject) else { throw ByteReader.Fault() }
            let evidence = try VerifiedEvidence(from: &question)
            let now = try question.number()
            try question.end()
            return openedID(keyID, evidence, now: now).bytes
        }
        guard let id = SessionID(bytes: subject) else { throw ByteReader.Fault() }
        let value = try question.word()
        try question.end()
        if kind == .find { return bytes(of: find(id, now: Int64(bitPattern: value))) }
        guard let number = SequenceNumber(value) else { throw ByteReader.Fault() }
        // The session may have been evicted since it was found: its numbers end with it.
        guard let session = live(id) else { return [0] }
        return [(kind == .use ? session.use(number) : session.admits(number)) ? 1 : 0]
    }

    private func bytes(of finding: Finding) -> [UInt8] {
        var out = ByteWriter()
        switch finding {
        case .unknown(.foreign): out.byte(0)
        case .unknown(.evicted): out.byte(3)
        case .expired: out.byte(1)
        case .live(let session):
            out.byte(2)
            out.block(session.keyID.bytes)
            session.evidence.write(to: &out)
        }
        return out.bytes
    }
}

extension Session {
    func admits(_ number: SequenceNumber, by successor: any Successor) -> Bool {
        ask(.admits, number, successor)
    }

    func use(_ number: SequenceNumber, by successor: any Successor) -> Bool {
        ask(.use, number, successor)
    }

    private func ask(
        _ question: Question,
        _ number: SequenceNumber,
        _ successor: any Successor
    ) -> Bool {
        var out = question.writer
        out.block(id.bytes)
        out.word(number.rawValue)
        return successor.ask(out.bytes) == [1]
    }
}

extension Question {
    fileprivate var writer: ByteWriter {
        var out = ByteWriter()
        out.byte(rawValue)
        return out
    }
}

/// Holds the successor for a table and its sessions.
final class SessionSuccession: Sendable {
    let place = SuccessorPlace()
}
