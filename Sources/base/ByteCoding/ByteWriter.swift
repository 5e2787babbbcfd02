/// Writes what another process of this gateway reads with a ``ByteReader``: numbers, most
/// significant byte first, and bytes behind their count.
package struct ByteWriter: Sendable {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package mutating func byte(_ value: UInt8) { bytes.append(value) }

    package mutating func flag(_ value: Bool) { bytes.append(value ? 1 : 0) }

    package mutating func word(_ value: UInt64) {
        withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func number(_ value: Int64) { word(UInt64(bitPattern: value)) }

    /// Bytes behind their count.
    package mutating func block(_ value: [UInt8]) {
        word(UInt64(value.count))
        bytes.append(contentsOf: value)
    }

    package mutating func text(_ value: String) { block(Array(value.utf8)) }

    /// A value behind a flag that says whether there is one.
    package mutating func optional<Value>(
        _ value: Value?,
        _ write: (inout ByteWriter, Value) -> Void
    ) {
        flag(value != nil)
        if let value { write(&self, value) }
    }
}
