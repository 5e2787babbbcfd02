/// The place of one key, or one client address, in the rollout of one rule.
package struct Bucket: Hashable, Sendable {
    /// 0…999,999. A share of n millionths takes in the buckets below n.
    package let number: Int

    /// The first eight bytes of a MAC, big-endian, modulo a million.
    ///
    /// The remainder favours low buckets by less than one part in 10¹³.
    init(mac: Span<UInt8>) {
        var value: UInt64 = 0
        for index in 0..<min(8, mac.count) { value = value << 8 | UInt64(mac[index]) }
        number = Int(value % 1_000_000)
    }

    /// Whether a share takes this bucket in.
    package func isWithin(_ share: Share) -> Bool { number < share.millionths }
}
