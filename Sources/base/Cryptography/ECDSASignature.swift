/// Where the two numbers of a DER ECDSA signature lie.
///
///     SEQUENCE (0x30) length { INTEGER (0x02) length r, INTEGER (0x02) length s }
///
/// RFC 3279 §2.2.3.
///
/// Read strictly: short-form lengths, minimal non-negative integers that fit their bytes, nothing
/// left over. Whether they are below the order is checked by the verification (SEC 1 §4.1.4 step
/// 1). `s` may be above half the order: App Attest does not normalise it.
struct ECDSASignature {
    let r: Range<Int>
    let s: Range<Int>

    init?(_ octets: Span<UInt8>, integerOctetsMax: Int) {
        guard octets.count >= 8, octets.count < 0x82, octets[0] == 0x30,
            Int(octets[1]) == octets.count - 2,
            let r = Self.integer(octets, at: 2, octetsMax: integerOctetsMax),
            let s = Self.integer(octets, at: r.upperBound, octetsMax: integerOctetsMax),
            s.upperBound == octets.count
        else { return nil }
        self.r = r
        self.s = s
    }

    private static func integer(
        _ octets: Span<UInt8>,
        at offset: Int,
        octetsMax: Int
    ) -> Range<Int>? {
        guard octets.count - offset >= 3, octets[offset] == 0x02 else { return nil }
        let count = Int(octets[offset + 1])
        let start = offset + 2
        // One byte more than the order has, for the sign.
        guard count >= 1, count <= octetsMax + 1, octets.count - start >= count else { return nil }
        guard octets[start] < 0x80 else { return nil }
        if octets[start] == 0, count > 1, octets[start + 1] < 0x80 { return nil }
        guard count <= octetsMax || octets[start] == 0 else { return nil }
        return start..<(start + count)
    }
}
