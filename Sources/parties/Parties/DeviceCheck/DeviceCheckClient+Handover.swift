import Encodings
import EventLoops
package import KeyStore
package import Signatures
import Synchronization

// Hand-over of the used device tokens. After it this process still asks Apple for its own requests,
// and its decider asks the successor whether their tokens are free.
extension DeviceCheckClient: TokenClaiming {
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

    package func claim(_ token: SHA256Digest, now: Int64) -> TokenClaim {
        switch board.withLock({ $0.used.claim(token, now: now) }) {
        case .begun: .free
        case .used: .used
        case .full, .crowded: .full
        }
    }

    package func release(_ token: SHA256Digest) { board.withLock { $0.used.release(token) } }
}
