/// The operating system that a client says it runs on. Any client can write it: it is a claim.
///
/// Two small numbers and a name of a list, so that it can stand in logs and on pages unescaped, and
/// needs no memory of its own. The number of a patch is left out.
package struct ClaimedSystem: Hashable, Sendable {
    /// The raw value is the word in logs and reports: add, do not rename.
    package enum Name: String, CaseIterable, Sendable {
        /// One of Apple's systems: a User-Agent with `Darwin` does not say which.
        case apple
        case ios, macos, tvos, watchos, visionos, android
    }

    package let name: Name
    package let major: UInt16
    /// `nil` where the client says none.
    package let minor: UInt16?

    package init(_ name: Name, major: UInt16, minor: UInt16? = nil) {
        (self.name, self.major, self.minor) = (name, major, minor)
    }

    /// `26.1`, or `14`.
    package var version: String { minor.map { "\(major).\($0)" } ?? "\(major)" }

    package var text: String { "\(name.rawValue) \(version)" }
}

extension ClaimedSystem {
    /// The first bytes of a User-Agent in which it is looked for.
    private static let bytesMax = 256

    /// Words of a User-Agent before a version, in lower case. `CPU OS 18_1` is an iPad's browser.
    private static let words: [(word: StaticString, name: Name)] = [
        ("darwin/", .apple), ("android ", .android), ("ios ", .ios), ("iphone os ", .ios),
        ("cpu os ", .ios), ("ipados ", .ios), ("macos ", .macos), ("tvos ", .tvos),
        ("watchos ", .watchos), ("visionos ", .visionos),
    ]

    /// The first system that a User-Agent names with a version; `nil` where it names none.
    init?(userAgent bytes: Span<UInt8>, _ range: Range<Int>) {
        let end = min(range.upperBound, range.lowerBound + Self.bytesMax)
        var place = range.lowerBound
        var isInWord = false
        while place < end {
            let byte = ByteScan.folded(bytes[place])
            if !isInWord, Self.beginsWord(byte),
                let found = Self.found(bytes, place..<end)
            {
                self = found
                return
            }
            isInWord = (0x61...0x7A).contains(byte)
            place += 1
        }
        return nil
    }

    /// Whether one of ``words`` begins so.
    private static func beginsWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a"), UInt8(ascii: "c"), UInt8(ascii: "d"), UInt8(ascii: "i"),
            UInt8(ascii: "m"), UInt8(ascii: "t"), UInt8(ascii: "v"), UInt8(ascii: "w"):
            true
        default: false
        }
    }

    private static func found(_ bytes: Span<UInt8>, _ range: Range<Int>) -> ClaimedSystem? {
        for (word, name) in words {
            let behind = range.lowerBound + word.utf8CodeUnitCount
            guard behind <= range.upperBound,
                ByteScan.equal(bytes, range.lowerBound..<behind, to: word)
            else { continue }
            var place = behind
            guard let major = number(bytes, from: &place, to: range.upperBound) else { return nil }
            var minor: UInt16?
            let marks = [UInt8(ascii: "."), UInt8(ascii: "_")]
            if place < range.upperBound, marks.contains(bytes[place]) {
                place += 1
                minor = number(bytes, from: &place, to: range.upperBound)
            }
            return name == .apple
                ? ofKernel(major, minor ?? 0) : ClaimedSystem(name, major: major, minor: minor)
        }
        return nil
    }

    /// One to three digits; `nil` for none, or more.
    private static func number(
        _ bytes: Span<UInt8>,
        from place: inout Int,
        to end: Int
    ) -> UInt16? {
        let start = place
        var number: UInt16 = 0
        while place < end, ASCIIByte.isDigit(bytes[place]) {
            guard place - start < 3 else { return nil }
            number = number * 10 + UInt16(bytes[place] - UInt8(ascii: "0"))
            place += 1
        }
        return place > start ? number : nil
    }

    /// The version of iOS whose kernel has this number: `Darwin/24.1.0` is that of iOS 18.1, and of
    /// macOS 15.1. From Darwin 25 on, Apple's systems share one number, which is greater by one.
    /// Systems before iOS 14 have no App Attest, and no claim.
    private static func ofKernel(_ major: UInt16, _ minor: UInt16) -> ClaimedSystem? {
        switch major {
        case ..<20: nil
        // iOS 14.0 and 14.1 have the same kernel.
        case 20: ClaimedSystem(.apple, major: 14, minor: minor == 0 ? 0 : minor + 1)
        case 21..<25: ClaimedSystem(.apple, major: major - 6, minor: minor)
        default: ClaimedSystem(.apple, major: major + 1, minor: minor)
        }
    }
}

extension FieldSection {
    /// The system that the first User-Agent line names, which any client can write; `nil` for none.
    package func claimedSystem(_ bytes: Span<UInt8>) -> ClaimedSystem? {
        value(of: "user-agent", bytes).flatMap { ClaimedSystem(userAgent: bytes, $0) }
    }
}
