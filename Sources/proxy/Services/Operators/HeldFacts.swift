/// How much content is held until it was judged, and how much of responses waits.
package struct HeldFacts: Sendable {
    package var memoryBytes: Int
    package var diskBytes: Int
    /// Of responses that wait for HTTP/2 clients.
    package var unsentBytes: Int

    package init(memoryBytes: Int = 0, diskBytes: Int = 0, unsentBytes: Int = 0) {
        self.memoryBytes = memoryBytes
        self.diskBytes = diskBytes
        self.unsentBytes = unsentBytes
    }
}
