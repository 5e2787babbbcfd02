extension Array where Element == UInt8 {
    /// Appends bytes of a span.
    @inline(__always)
    mutating func append(_ source: Span<UInt8>, _ range: Range<Int>) {
        // The pointer lives for the call only, and the copy is made inside it.
        source.extracting(range).withUnsafeBufferPointer { append(contentsOf: $0) }
    }

    /// Appends an ASCII text.
    @inline(__always)
    mutating func append(_ text: StaticString) {
        // The pointer lives for the call only, and the copy is made inside it.
        text.withUTF8Buffer { append(contentsOf: $0) }
    }

    /// Appends a number in decimal digits.
    mutating func append(decimal number: UInt64) {
        var divisor: UInt64 = 1
        while number / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / divisor % 10))
            divisor /= 10
        }
    }

    /// Appends a number in lower-case hexadecimal digits without leading zeros.
    mutating func append(hexadecimal number: UInt64) {
        var shift = UInt64((63 - (number | 1).leadingZeroBitCount) / 4 * 4)
        while true {
            let digit = UInt8(truncatingIfNeeded: number &>> shift & 15)
            append(digit < 10 ? 0x30 + digit : 0x57 + digit)
            if shift == 0 { return }
            shift -= 4
        }
    }

    /// Ends a line.
    @inline(__always)
    mutating func appendLineEnd() {
        append(Octet.carriageReturn)
        append(Octet.lineFeed)
    }
}
