import Cryptography
package import Encodings
import EventLoops
import Signatures
import Synchronization
import Tokens

// Hand-over of the used device tokens. After it this process still asks Apple for its own requests,
// and asks its successor whether their tokens are free.
extension DeviceCheckClient {
    /// Queries. The raw value is the first byte; those of challenges, keys and sessions have lower
    /// ones.
    private enum Question: UInt8 {
        case claim = 96
        case release
    }

    /// The state that the successor needs. Afterwards only the successor may begin tokens.
    package var state: [UInt8] {
        board.withLock { board in
            var out = ByteWriter()
            board.used.write(to: &out, now: MonotonicClock.seconds)
            return out.bytes
        }
    }

    /// Reads the state of another process, before any token was used here.
    ///
    /// - Returns: whether it could be read; if not, the client can't be used.
    package func take(_ state: [UInt8]) -> Bool {
        board.withLock { board in
            var state = ByteReader(state)
            do throws(ByteReader.Fault) {
                try board.used.take(from: &state, now: MonotonicClock.seconds)
                try state.end()
                return true
            } catch {
                return false
            }
        }
    }

    /// From now on the successor decides which tokens are free.
    package func handOver(to successor: any Successor) { self.successor.give(to: successor) }

    func claim(_ token: SHA256Digest, by successor: any Successor) -> UsedTokens.Beginning {
        switch successor.ask(Self.bytes(.claim, token)) {
        case [0]: .begun
        case [1]: .used
        // Without an answer the token can't count as free.
        default: .full
        }
    }

    func release(_ token: SHA256Digest, by successor: any Successor) {
        // The answer does not matter: without it the token stays used.
        successor.ask(Self.bytes(.release, token)) { _ in }
    }

    private static func bytes(_ question: Question, _ token: SHA256Digest) -> [UInt8] {
        [question.rawValue] + token.array
    }

    /// Answers a query of the predecessor.
    ///
    /// - Returns: `nil` when the query is not about tokens.
    @Sendable package func answer(_ question: [UInt8]) -> [UInt8]? {
        guard let first = question.first, let kind = Question(rawValue: first),
            let token = SHA256Digest(bytes: question.dropFirst())
        else { return nil }
        return board.withLock { board in
            switch kind {
            case .claim:
                switch board.used.claim(token, now: MonotonicClock.seconds) {
                case .begun: return [0]
                case .used: return [1]
                case .full, .crowded: return [2]
                }
            case .release:
                board.used.release(token)
                return [0]
            }
        }
    }
}
