// The lane's memory: for what is read, and for what is written.
extension Lane {
    /// Copies bytes to where reads land: valid until the next read.
    ///
    /// - bytes: at most ``inputBytes``.
    package func asRead(_ bytes: Span<UInt8>) -> UnsafeBufferPointer<UInt8> {
        let count = min(bytes.count, wholeInput.count)
        let target = UnsafeMutableRawBufferPointer(rebasing: wholeInput[..<count])
        // The lane's memory is as long-lived as the lane; the copy is made inside the call.
        bytes.extracting(first: count).withUnsafeBytes { target.copyMemory(from: $0) }
        return UnsafeBufferPointer(target.assumingMemoryBound(to: UInt8.self))
    }

    /// An empty array with the lane's memory, for the bytes that one event writes; give it back
    /// with ``giveBack(_:)``.
    package func takeOutput() -> [UInt8] {
        var taken: [UInt8] = []
        swap(&taken, &output)
        return taken
    }

    /// Taken out of the caller's variable: of an array that two hold, removing makes a third.
    package func giveBack(_ used: inout [UInt8]) {
        used.removeAll(keepingCapacity: true)
        swap(&used, &output)
    }
}
