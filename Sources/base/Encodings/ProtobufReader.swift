/// Reads the fields of one message of Protocol Buffers, in their order.
///
/// It knows no schema: what is no field of the caller's is skipped by the caller. It is strict
/// where parsers differ: a group, which no schema of proto3 has, is malformed, and so is a number
/// of a field that is 0.
package struct ProtobufReader {
    /// Why bytes are no message.
    package enum Fault: Error, Equatable {
        /// They end within a field.
        case truncated
        /// A varint has more than 64 bits.
        case varint
        /// A field's number is 0 or has more than 29 bits, or its type is that of a group or none.
        case tag
    }

    /// The value of a field. Ranges are within the bytes that are read.
    package enum Value: Equatable {
        case varint(UInt64)
        /// A string, bytes, or a message.
        case bytes(Range<Int>)
        /// A number of 4 or 8 bytes.
        case fixed
    }

    private var position: Int
    private let end: Int

    /// - range: of the message.
    package init(_ range: Range<Int>) {
        position = range.lowerBound
        end = range.upperBound
    }

    /// The next field; `nil` at the end of the message.
    package mutating func next(
        _ bytes: Span<UInt8>
    ) throws(Fault) -> (number: UInt64, value: Value)? {
        guard position < end else { return nil }
        let tag = try varint(bytes)
        let number = tag >> 3
        guard number > 0, number < 1 << 29 else { throw .tag }
        switch tag & 7 {
        case 0: return (number, .varint(try varint(bytes)))
        case 1: return (number, try fixed(8))
        case 2:
            let count = try varint(bytes)
            guard count <= UInt64(end - position) else { throw .truncated }
            defer { position += Int(count) }
            return (number, .bytes(position..<position + Int(count)))
        case 5: return (number, try fixed(4))
        default: throw .tag
        }
    }

    private mutating func fixed(_ count: Int) throws(Fault) -> Value {
        guard end - position >= count else { throw .truncated }
        position += count
        return .fixed
    }

    private mutating func varint(_ bytes: Span<UInt8>) throws(Fault) -> UInt64 {
        var number: UInt64 = 0
        for shift in stride(from: 0, to: 70, by: 7) {
            guard position < end else { throw .truncated }
            let byte = bytes[position]
            position += 1
            guard shift < 63 || byte <= 1 else { throw .varint }
            number |= UInt64(byte & 0x7F) << UInt64(shift)
            if byte < 0x80 { return number }
        }
        throw .varint
    }
}

/// Writes a message of Protocol Buffers. What has the default of its type is left out by the
/// caller.
package struct ProtobufWriter {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package mutating func field(_ number: UInt64, _ value: UInt64) {
        bytes.append(short: number << 3)
        bytes.append(short: value)
    }

    package mutating func field(_ number: UInt64, _ value: some Collection<UInt8>) {
        bytes.append(short: number << 3 | 2)
        bytes.append(short: UInt64(value.count))
        bytes.append(contentsOf: value)
    }

    /// A message within this one.
    package mutating func message(_ number: UInt64, _ write: (inout ProtobufWriter) -> Void) {
        var inner = ProtobufWriter()
        write(&inner)
        field(number, inner.bytes)
    }
}
