/// Reads the bytes of a ``ByteWriter``. It reads nothing beyond the end.
package struct ByteReader: Sendable {
    /// The bytes are not those of a ``ByteWriter``.
    package struct Fault: Error, Equatable { package init() {} }

    private let bytes: [UInt8]
    private var place = 0

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The number of bytes that are not read yet.
    package var left: Int { bytes.count - place }

    package mutating func byte() throws(Fault) -> UInt8 {
        guard left >= 1 else { throw Fault() }
        defer { place += 1 }
        return bytes[place]
    }

    package mutating func flag() throws(Fault) -> Bool {
        switch try byte() {
        case 0: false
        case 1: true
        default: throw Fault()
        }
    }

    package mutating func word() throws(Fault) -> UInt64 {
        guard left >= 8 else { throw Fault() }
        defer { place += 8 }
        return bytes[place..<place + 8].reduce(0) { $0 << 8 | UInt64($1) }
    }

    package mutating func number() throws(Fault) -> Int64 { Int64(bitPattern: try word()) }

    /// Reads a number that ``ByteWriter/short(_:)`` has written.
    package mutating func short() throws(Fault) -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            let byte = try byte()
            guard shift < 63 || byte <= 1 else { throw Fault() }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        throw Fault()
    }

    /// Reads a count, then that number of bytes.
    ///
    /// - max: the most that are read.
    package mutating func block(max: Int = .max) throws(Fault) -> [UInt8] {
        guard let count = Int(exactly: try word()), count <= max, count <= left else {
            throw Fault()
        }
        defer { place += count }
        return Array(bytes[place..<place + count])
    }

    package mutating func text(max: Int = .max) throws(Fault) -> String {
        guard let text = String(utf8: try block(max: max)) else { throw Fault() }
        return text
    }

    /// Reads a flag that says whether there is a value, then the value.
    package mutating func optional<Value>(
        _ read: (inout ByteReader) throws(Fault) -> Value
    ) throws(Fault) -> Value? {
        try flag() ? try read(&self) : nil
    }

    /// - Throws: when bytes are left.
    package func end() throws(Fault) {
        guard left == 0 else { throw Fault() }
    }
}

/// Writes what another process of this gateway reads with a ``ByteReader``: numbers with the most
/// significant byte first, and bytes after their count.
package struct ByteWriter: Sendable {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package mutating func byte(_ value: UInt8) { bytes.append(value) }

    package mutating func flag(_ value: Bool) { bytes.append(value ? 1 : 0) }

    package mutating func word(_ value: UInt64) { bytes.append(word: value) }

    package mutating func number(_ value: Int64) { word(UInt64(bitPattern: value)) }

    /// Writes a number as ``Swift/Array/append(short:)`` does.
    package mutating func short(_ value: UInt64) { bytes.append(short: value) }

    /// Writes the number of bytes, then the bytes.
    package mutating func block(_ value: [UInt8]) {
        word(UInt64(value.count))
        bytes.append(contentsOf: value)
    }

    package mutating func text(_ value: String) { block(Array(value.utf8)) }

    /// Writes a flag that says whether there is a value, then the value.
    package mutating func optional<Value>(
        _ value: Value?,
        _ write: (inout ByteWriter, Value) -> Void
    ) {
        flag(value != nil)
        if let value { write(&self, value) }
    }
}

extension [UInt8] {
    /// Appends a number as eight bytes, the most significant byte first.
    package mutating func append(word: UInt64) {
        // The pointer lives for the call only, and the copy is made inside it.
        unsafe Swift.withUnsafeBytes(of: word.bigEndian) { unsafe append(contentsOf: $0) }
    }

    /// Appends a number in as few bytes as it needs: seven bits in each, the lowest first, and the
    /// highest bit set in all but the last one (LEB128).
    mutating func append(short number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(rest))
    }
}
