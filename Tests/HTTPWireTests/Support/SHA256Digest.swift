/// SHA-256 in hexadecimal (FIPS 180-4), to compare bodies with the cases; slow and short.
func sha256(_ bytes: [UInt8]) -> String {
    // The first 32 bits of the fractional parts of the cube and square roots of the first primes.
    var primes: [UInt32] = []
    var candidate: UInt32 = 2
    while primes.count < 64 {
        if primes.allSatisfy({ candidate % $0 != 0 }) { primes.append(candidate) }
        candidate += 1
    }
    let round = primes.map { root($0, power: 3) }
    var state = primes.prefix(8).map { root($0, power: 2) }

    var message = bytes + [0x80]
    while message.count % 64 != 56 { message.append(0) }
    for shift in stride(from: 56, through: 0, by: -8) {
        message.append(UInt8(truncatingIfNeeded: (bytes.count * 8) >> shift))
    }
    func rotated(_ word: UInt32, _ by: UInt32) -> UInt32 { word &>> by | word &<< (32 - by) }
    for block in stride(from: 0, to: message.count, by: 64) {
        var words = (0..<16).map { index in
            (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(message[block + index * 4 + $1]) }
        }
        for index in 16..<64 {
            let (early, late) = (words[index - 15], words[index - 2])
            let first = rotated(early, 7) ^ rotated(early, 18) ^ early >> 3
            let second = rotated(late, 17) ^ rotated(late, 19) ^ late >> 10
            words.append(words[index - 16] &+ first &+ words[index - 7] &+ second)
        }
        var v = state
        for index in 0..<64 {
            let high = rotated(v[4], 6) ^ rotated(v[4], 11) ^ rotated(v[4], 25)
            let choice = v[4] & v[5] ^ ~v[4] & v[6]
            let first = v[7] &+ high &+ choice &+ round[index] &+ words[index]
            let low = rotated(v[0], 2) ^ rotated(v[0], 13) ^ rotated(v[0], 22)
            let majority = v[0] & v[1] ^ v[0] & v[2] ^ v[1] & v[2]
            v = [first &+ low &+ majority, v[0], v[1], v[2], v[3] &+ first, v[4], v[5], v[6]]
        }
        for index in 0..<8 { state[index] = state[index] &+ v[index] }
    }
    let digits = Array("0123456789abcdef")
    return String(
        state.flatMap { word in
            stride(from: 28, through: 0, by: -4).map { digits[Int(word >> UInt32($0) & 15)] }
        }
    )
}

/// The first 32 bits behind the point of a root, found by halving.
private func root(_ number: UInt32, power: Int) -> UInt32 {
    // The root times 2³², as a whole number, is below 2³⁸; squares and cubes in 128 bits.
    var low: UInt128 = 0
    var high: UInt128 = 1 << 37
    while high - low > 1 {
        let middle = (low + high) / 2
        let isBelow: Bool
        if power == 2 {
            isBelow = middle * middle <= UInt128(number) << 64
        } else {
            // A cube has 96 bits behind the point; 2³⁷ cubed is 2¹¹¹.
            isBelow = middle * middle * middle <= UInt128(number) << 96
        }
        if isBelow { low = middle } else { high = middle }
    }
    return UInt32(truncatingIfNeeded: low)
}
