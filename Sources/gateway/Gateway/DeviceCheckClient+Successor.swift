import AppleServices
import ByteCoding
import Challenges
import Cryptography
import Synchronization

// From one process to the next: which device tokens were used. After the hand-over this process
// still asks Apple for the requests that it has, and asks the next one whether their tokens are
// free.
extension DeviceCheckClient {
    /// Questions. The raw value is the first byte; those of challenges, keys and sessions have
    /// lower ones.
    private enum Question: UInt8 {
        case claim = 96
        case release
    }

    /// What the next process needs. No token may begin here afterwards, but by it.
    var state: [UInt8] {
        board.withLock { board in
            var out = ByteWriter()
            board.used.write(to: &out, now: Self.seconds)
            return out.bytes
        }
    }

    /// Takes what another process has written, before anything was asked here.
    ///
    /// - Returns: whether it could be read; otherwise the client can't be used.
    func take(_ state: [UInt8]) -> Bool {
        board.withLock { board in
            var state = ByteReader(state)
            do throws(ByteReader.Fault) {
                try board.used.take(from: &state, now: Self.seconds)
                try state.end()
                return true
            } catch {
                return false
            }
        }
    }

    /// From now on the successor decides which tokens are free.
    func handOver(to successor: any Successor) { self.successor.give(to: successor) }

    func claim(_ token: SHA256Digest, by successor: any Successor) -> UsedTokens.Beginning {
        switch successor.ask(Self.bytes(.claim, token)) {
        case [0]: .begun
        case [1]: .used
        // Nobody can say that it is free.
        default: .full
        }
    }

    func release(_ token: SHA256Digest, by successor: any Successor) {
        // Nothing hangs on the answer: without it the token stays used.
        successor.ask(Self.bytes(.release, token)) { _ in }
    }

    private static func bytes(_ question: Question, _ token: SHA256Digest) -> [UInt8] {
        [question.rawValue] + token.array
    }

    /// Answers a question of the process before.
    ///
    /// - Returns: `nil` when it is no question about tokens.
    @Sendable func answer(_ question: [UInt8]) -> [UInt8]? {
        guard let first = question.first, let kind = Question(rawValue: first),
            let token = SHA256Digest(bytes: question.dropFirst())
        else { return nil }
        return board.withLock { board in
            switch kind {
            case .claim:
                switch board.used.claim(token, now: Self.seconds) {
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
