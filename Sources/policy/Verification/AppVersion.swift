package import HTTPWire

/// The build of an app, as its CFBundleVersion says: 1 to 24 letters, digits, `.`, `_`, `+` and
/// `-`, held inline.
///
/// Apple allows only digits and dots. A text with other characters than these is no version, so
/// that a version can stand in logs and on pages unescaped.
package struct AppVersion: Hashable, Sendable {
    /// The longest text. Apple's own limit is 18 bytes.
    package static let bytesMax = 24

    // Eight bytes each, the first one highest; zeros after the last.
    private var first: UInt64 = 0
    private var second: UInt64 = 0
    private var third: UInt64 = 0

    /// `nil` for a text that is no version.
    package init?(_ text: String) {
        var count = 0
        for byte in text.utf8 {
            guard put(byte, at: count) else { return nil }
            count += 1
        }
        guard count > 0 else { return nil }
    }

    /// `nil` for bytes that are no version.
    package init?(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        guard !range.isEmpty, range.count <= Self.bytesMax else { return nil }
        for index in range {
            guard put(bytes[index], at: index - range.lowerBound) else { return nil }
        }
    }

    private mutating func put(_ byte: UInt8, at place: Int) -> Bool {
        guard place < Self.bytesMax, Self.isPlain(byte) else { return false }
        let shifted = UInt64(byte) << UInt64(56 - place % 8 * 8)
        switch place / 8 {
        case 0: first |= shifted
        case 1: second |= shifted
        default: third |= shifted
        }
        return true
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "+"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    package var text: String {
        var bytes: [UInt8] = []
        for word in [first, second, third] {
            for place in 0..<8 {
                let byte = UInt8(truncatingIfNeeded: word >> UInt64(56 - place * 8))
                guard byte > 0 else { break }
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The build that a request comes from, as far as it is known.
package struct AppBuild: Hashable, Sendable {
    /// Where the version comes from. The raw value is the word in reports: add, do not rename.
    package enum Source: String, CaseIterable, Sendable {
        /// The device has signed it, as iOS and macOS 27 and later do with each assertion.
        case signed
        /// The User-Agent says it. Any client can write it.
        case claimed
        /// No version is known.
        case none
    }

    package let source: Source
    /// `nil` where there is none, and in counts for all versions that are not counted apart.
    package let version: AppVersion?

    package init(_ source: Source, _ version: AppVersion?) {
        self.source = source
        self.version = version
    }

    /// - signed: what the device has signed; it takes precedence over what is claimed.
    package init(signed: AppVersion?, claimed: AppVersion?) {
        if let signed {
            self.init(.signed, signed)
        } else if let claimed {
            self.init(.claimed, claimed)
        } else {
            self.init(.none, nil)
        }
    }
}

/// What a client says about itself and no device has signed. Any client can write it.
package struct ClientClaims: Hashable, Sendable {
    /// The build of the app, where a device might not have signed it.
    package var version: AppVersion?
    package var system: ClaimedSystem?

    package init(version: AppVersion? = nil, system: ClaimedSystem? = nil) {
        (self.version, self.system) = (version, system)
    }
}
