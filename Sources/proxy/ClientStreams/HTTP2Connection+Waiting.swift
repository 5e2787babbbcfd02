import HTTP2Wire
import Lanes

// What waits for the client's windows.
extension HTTP2Connection {
    /// What may still be dropped.
    package var waitingBytes: Int { mustDrop ? 0 : session.unsentBytes }

    package func dropWaiting() {
        mustDrop = true
        schedule()
    }

    /// Tells the host how much waits.
    func countUnsent() {
        let change = session.unsentBytes - countedUnsent
        guard change != 0, !isClosed else { return }
        countedUnsent = session.unsentBytes
        host.countUnsent(change)
    }

    /// Notes which responses wait for the client behind a write, and bounds them.
    func settle() {
        for stream in takeUnsettled() { stream.sent() }
        bound()
    }

    /// Bounds what waits for the client.
    func bound() {
        guard !isClosed else { return }
        if mustDrop || session.unsentBytesExceed {
            let worstFirst = session.openChannels.sorted {
                $0.outgoingCount > $1.outgoingCount
            }
            for channel in worstFirst where channel.isStalled {
                guard mustDrop || session.unsentBytesExceed else { break }
                (channel.owner as? HTTP2Stream)?.endStalled(.enhanceYourCalm)
            }
            mustDrop = false
        }
        countUnsent()
    }
}
