internal import Encodings

/// Reads BER (X.690 §8) and writes it again as DER: lengths are definite and minimal, and each
/// OCTET STRING is in one piece.
///
/// Receipts are in BER. Parts that are in DER already, such as a receipt's certificate, stay as
/// they are.
enum BER {
    /// The deepest nesting that is read. Receipts have eleven levels.
    static let depthMax = 24

    /// The value with definite lengths. Throws where the bytes are not one element, or have a form
    /// that no receipt has: tags above 30, or constructed strings of other kinds.
    static func definite(_ bytes: Span<UInt8>) throws(DERError) -> [UInt8] {
        var offset = 0
        let element = try element(in: bytes, at: &offset, end: bytes.count, depth: 0)
        guard offset == bytes.count else { throw DERError(.trailingBytes, at: offset) }
        return element
    }

    private static func element(
        in bytes: Span<UInt8>,
        at offset: inout Int,
        end: Int,
        depth: Int
    ) throws(DERError) -> [UInt8] {
        let start = offset
        guard depth < depthMax else { throw DERError(.tooMany, at: start) }
        let (tag, count) = try header(in: bytes, at: &offset, end: end)
        guard tag.bits & 0x20 != 0 else {
            guard let count else { throw DERError(.lengthNotDefinite, at: start) }
            let content = bytes.copy(offset..<(offset + count))
            offset += count
            return DEREncoder.element(tag, content)
        }
        // A constructed OCTET STRING becomes the bytes of its pieces, which are OCTET STRINGs too.
        let isString = tag == DERTag(bits: 0x20, number: DERTag.octetString.number)
        var content: [UInt8] = []
        let limit = count.map { offset + $0 } ?? end
        while count == nil || offset < limit {
            if count == nil, limit - offset >= 2, bytes[offset] == 0, bytes[offset + 1] == 0 {
                offset += 2
                break
            }
            let place = offset
            let part = try element(in: bytes, at: &offset, end: limit, depth: depth + 1)
            guard isString else {
                content += part
                continue
            }
            var cursor = DERCursor(0..<part.count)
            let whole = ContiguousArray(part)
            guard let piece = try? cursor.next(.octetString, in: whole.span) else {
                throw DERError(.unexpectedTag, at: place)
            }
            content += part[piece]
        }
        return DEREncoder.element(isString ? .octetString : tag, content)
    }

    /// Tag and length; no count for a length that is not definite.
    private static func header(
        in bytes: Span<UInt8>,
        at offset: inout Int,
        end: Int
    ) throws(DERError) -> (DERTag, count: Int?) {
        let start = offset
        guard end - offset >= 2 else { throw DERError(.truncated, at: start) }
        let tag = DERTag(bits: bytes[offset] & 0xE0, number: UInt32(bytes[offset] & 0x1F))
        guard tag.number < 31, bytes[offset] != 0 else { throw DERError(.unexpectedTag, at: start) }
        let first = bytes[offset + 1]
        offset += 2
        guard first != 0x80 else { return (tag, nil) }
        var count = Int(first)
        if first > 0x80 {
            let digits = Int(first & 0x7F)
            guard digits <= 4 else { throw DERError(.lengthTooLarge, at: start) }
            guard end - offset >= digits else { throw DERError(.truncated, at: start) }
            count = 0
            for _ in 0..<digits {
                count = count << 8 | Int(bytes[offset])
                offset += 1
            }
        }
        guard end - offset >= count else { throw DERError(.truncated, at: start) }
        return (tag, count)
    }
}
