// The lane's memory for what is read.
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
}
