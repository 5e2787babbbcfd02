internal import Encodings
internal import RequestBinding

/// Sliding-window bitmap of the used sequence numbers of a session.
///
/// It is the replay window of IPsec (RFC 4303 §3.4.3) with the bitmap as a ring (RFC 6479), so that
/// no bits are shifted.
struct SequenceWindow: Sendable {
    /// The widest window that is read: as wide as the configuration allows.
    private static let widthMax = 4_096

    /// The greatest distance of a number below the highest.
    private let width: UInt64
    /// The highest number used; 0 at first, which is no number.
    private(set) var highest: UInt64 = 0
    /// The bit of a number is at its remainder by the count of bits. There is one more bit than the
    /// width, for the highest number.
    private var words: [UInt64]

    /// - width: at least 1.
    init(width: Int) {
        precondition(width >= 1, "SequenceWindow: a window of nothing")
        self.width = UInt64(width)
        words = Array(repeating: 0, count: width / 64 + 1)
    }

    /// Whether the number is free.
    func admits(_ number: SequenceNumber) -> Bool {
        let number = number.rawValue
        guard number <= highest else { return true }
        guard highest - number <= width else { return false }
        let (word, bit) = place(of: number)
        return words[word] & bit == 0
    }

    /// Uses the number; answers whether it was free.
    mutating func use(_ number: SequenceNumber) -> Bool {
        guard admits(number) else { return false }
        if number.rawValue > highest { advance(to: number.rawValue) }
        let (word, bit) = place(of: number.rawValue)
        words[word] |= bit
        return true
    }

    /// Clears the bits of the numbers above the highest, which stood for lower ones until now.
    private mutating func advance(to number: UInt64) {
        if number - highest >= UInt64(words.count) * 64 {
            for index in words.indices { words[index] = 0 }
        } else {
            for passed in (highest + 1)...number {
                let (word, bit) = place(of: passed)
                words[word] &= ~bit
            }
        }
        highest = number
    }

    func write(to out: inout ByteWriter) {
        out.word(width)
        out.word(highest)
        for word in words { out.word(word) }
    }

    /// Reads the state that another process has written. Its windows may have another width.
    /// A number that its window would refuse counts as used.
    init(width: Int, from bytes: inout ByteReader) throws(ByteReader.Fault) {
        guard let widthBefore = Int(exactly: try bytes.word()),
            (1...Self.widthMax).contains(widthBefore)
        else { throw ByteReader.Fault() }
        var before = SequenceWindow(width: widthBefore)
        before.highest = try bytes.word()
        guard before.highest <= SequenceNumber.max.rawValue else { throw ByteReader.Fault() }
        for index in before.words.indices { before.words[index] = try bytes.word() }
        guard width != widthBefore else {
            self = before
            return
        }
        self.init(width: width)
        highest = before.highest
        let oldest = highest - min(highest, self.width)
        for value in oldest...highest {
            guard let number = SequenceNumber(value), !before.admits(number) else { continue }
            let (word, bit) = place(of: value)
            words[word] |= bit
        }
    }

    private func place(of number: UInt64) -> (word: Int, bit: UInt64) {
        (Int(number / 64 % UInt64(words.count)), 1 << (number % 64))
    }
}
