/// How much content is held until it was judged.
package struct HeldFacts: Sendable {
    package var memoryBytes: Int
    package var diskBytes: Int

    package init(memoryBytes: Int = 0, diskBytes: Int = 0) {
        self.memoryBytes = memoryBytes
        self.diskBytes = diskBytes
    }
}
