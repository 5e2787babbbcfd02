/// An estimate of the number of different installs that were added, in a fixed number of bytes.
///
/// HyperLogLog (Flajolet, Fusy, Gandouet, Meunier: "the analysis of a near-optimal cardinality
/// estimation algorithm", 2007), with linear counting below 2.5 times the registers. With m
/// registers of one byte, the error's standard deviation is 1.04 / √m: 3.3 % for 1024 registers,
/// 6.5 % for 256. It is less below m installs. No package of Swift's or C's among those that this
/// project may use offers it, so it is written here.
///
/// Adding and merging allocate nothing, once the sketch has registers of its own. Hash values are
/// made under a secret key, by Swift's `Hasher` or ``InstallHash``: no outsider can make installs
/// that count for many. Only sketches under one key are merged, so those that gateways exchange
/// are made by ``InstallHash``.
package struct InstallSketch: Equatable, Sendable {
    package static let bitsRange = 7...14

    /// A register does not count a longer run of zeros than this. It keeps the estimate below 2^54.
    private static let rankMax: UInt8 = 40

    private let bits: UInt8
    private var registers: [UInt8]
    package private(set) var isEmpty = true

    /// - bits: the logarithm of the number of registers, in `bitsRange`.
    package init(bits: Int = 10) {
        precondition(Self.bitsRange ~= bits, "InstallSketch: 2^7 to 2^14 registers")
        self.bits = UInt8(bits)
        registers = [UInt8](repeating: 0, count: 1 << bits)
    }

    /// - hash: evenly distributed, as `Hashable.hashValue` is; the same for the same install.
    package mutating func add(hash: Int) {
        let word = UInt64(bitPattern: Int64(hash))
        let place = Int(word >> (64 - UInt64(bits)))
        let rank = min(UInt8((word << UInt64(bits)).leadingZeroBitCount + 1), Self.rankMax)
        if registers[place] < rank { registers[place] = rank }
        isEmpty = false
    }

    /// Adds all that was added to another sketch, which has as many registers.
    package mutating func merge(_ other: InstallSketch) {
        precondition(bits == other.bits, "InstallSketch: two sizes don't merge")
        guard !other.isEmpty else { return }
        for place in registers.indices where registers[place] < other.registers[place] {
            registers[place] = other.registers[place]
        }
        isEmpty = false
    }

    /// The registers; no bytes for an empty sketch.
    package var bytes: [UInt8] { isEmpty ? [] : registers }

    /// - bytes: ``bytes`` of a sketch of this size; `nil` for others.
    package init?(bytes: [UInt8], bits: Int = 10) {
        self.init(bits: bits)
        guard !bytes.isEmpty else { return }
        guard bytes.count == registers.count, bytes.allSatisfy({ $0 <= Self.rankMax }) else {
            return nil
        }
        registers = bytes
        isEmpty = false
    }

    /// Forgets all that was added.
    package mutating func clear() {
        guard !isEmpty else { return }
        for place in registers.indices { registers[place] = 0 }
        isEmpty = true
    }

    /// The estimate: 0 if nothing was added, else at least 1. It takes a step for each register.
    package var count: Int {
        guard !isEmpty else { return 0 }
        let total = Double(registers.count)
        var (sum, zeros) = (0.0, 0)
        for register in registers {
            sum += 1 / Double(UInt64(1) << UInt64(register))
            if register == 0 { zeros += 1 }
        }
        let estimate = 0.7213 / (1 + 1.079 / total) * total * total / sum
        guard estimate <= 2.5 * total, zeros > 0 else { return Int(estimate.rounded()) }
        return max(Int((total * Self.logarithm(total / Double(zeros))).rounded()), 1)
    }

    /// The natural logarithm of 1…2^14, by halving and the series of artanh. This target imports no
    /// C library.
    private static func logarithm(_ value: Double) -> Double {
        var (value, halvings) = (value, 0)
        while value > 1.5 {
            value /= 2
            halvings += 1
        }
        let ratio = (value - 1) / (value + 1)
        var (power, sum) = (ratio, 0.0)
        for term in 0..<20 {
            sum += power / Double(2 * term + 1)
            power *= ratio * ratio
        }
        return 2 * sum + Double(halvings) * 0.693_147_180_559_945_3
    }
}

/// The hash of installs under a secret key that gateways share: the same in each of their
/// processes.
///
/// SipHash-1-3 (Aumasson, Bernstein: "SipHash: a fast short-input PRF", 2012), which Swift's
/// `Hasher` also is. That one takes no key.
package struct InstallHash: Equatable, Sendable {
    private let key0: UInt64
    private let key1: UInt64

    /// - key: random words that only the gateways know.
    package init(key: (UInt64, UInt64)) { (key0, key1) = key }

    /// - bytes: of a digest; a multiple of 8 bytes, below 256.
    package func hash(_ bytes: Span<UInt8>) -> Int {
        precondition(bytes.count % 8 == 0 && bytes.count < 256, "InstallHash: no digest")
        return bytes.withUnsafeBytes { buffer in
            hash(bytes: buffer.count) { place in
                UInt64(littleEndian: buffer.loadUnaligned(fromByteOffset: place, as: UInt64.self))
            }
        }
    }

    package func hash(_ word: UInt64) -> Int { hash(bytes: 8) { _ in word } }

    /// - word: the eight bytes from a place on, the first one lowest.
    private func hash(bytes count: Int, _ word: (Int) -> UInt64) -> Int {
        var v0 = key0 ^ 0x736f_6d65_7073_6575
        var v1 = key1 ^ 0x646f_7261_6e64_6f6d
        var v2 = key0 ^ 0x6c79_6765_6e65_7261
        var v3 = key1 ^ 0x7465_6462_7974_6573
        func round() {
            v0 &+= v1
            v1 = v1 << 13 | v1 >> 51
            v1 ^= v0
            v0 = v0 << 32 | v0 >> 32
            v2 &+= v3
            v3 = v3 << 16 | v3 >> 48
            v3 ^= v2
            v0 &+= v3
            v3 = v3 << 21 | v3 >> 43
            v3 ^= v0
            v2 &+= v1
            v1 = v1 << 17 | v1 >> 47
            v1 ^= v2
            v2 = v2 << 32 | v2 >> 32
        }
        func take(_ word: UInt64) {
            v3 ^= word
            round()
            v0 ^= word
        }
        for place in stride(from: 0, to: count, by: 8) { take(word(place)) }
        take(UInt64(count) << 56)
        v2 ^= 0xff
        for _ in 0..<3 { round() }
        return Int(truncatingIfNeeded: v0 ^ v1 ^ v2 ^ v3)
    }
}
