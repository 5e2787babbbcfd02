import HTTP2Wire
import Lanes

// Requests that are under way at once count as connections do: each costs what a connection of
// HTTP/1.1 costs, one to the origin included. nginx counts them so, too (limit_conn).
extension HTTP2Connection {
    /// Counts one more request; `false` where the connection has one and may not have more.
    func takePlace() -> Bool {
        guard countedStreams == 0 || host.takePlace(of: client.entry) else { return false }
        countedStreams += 1
        return true
    }

    /// A request is over. Safe to call again.
    func giveBackPlace(of stream: HTTP2Stream) {
        guard stream.isCounted else { return }
        stream.isCounted = false
        countedStreams -= 1
        if countedStreams > 0 { host.giveBackPlace(of: client.entry) }
    }

    /// Sees the client as the current settings do. What is under way is counted with the entry that
    /// its address has now.
    func settleClient() {
        guard client.settingsNumber != host.settingsNumber else { return }
        let places = max(countedStreams - 1, 0)
        let before = client.entry
        for _ in 0..<places { host.giveBackPlace(of: before) }
        host.settle(client)
        for _ in 0..<places { host.keepPlace(of: client.entry) }
    }
}
