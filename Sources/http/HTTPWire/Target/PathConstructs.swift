/// What in a path two readers may read in two ways.
///
/// Found by ``TargetView``; those in ``allowable`` a rule may allow.
package struct PathConstructs: OptionSet, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    /// `%2F`: some servers decode it before they split the path.
    package static let encodedSlash = PathConstructs(rawValue: 1)
    /// `%5C`: some servers decode it and take it for a slash.
    package static let encodedBackslash = PathConstructs(rawValue: 2)
    /// `\`: some servers take it for a slash.
    package static let backslash = PathConstructs(rawValue: 4)
    /// Bytes that are no UTF-8 once decoded, among them overlong forms of `/` and `.`.
    package static let invalidEncoding = PathConstructs(rawValue: 8)

    /// What a rule can allow.
    package static let allowable: PathConstructs = [
        .encodedSlash, .encodedBackslash, .backslash, .invalidEncoding,
    ]

    /// `%` without two hexadecimal digits. Never allowed.
    package static let brokenEscape = PathConstructs(rawValue: 16)
    /// `%00`…`%1F`, `%7F`. Never allowed.
    package static let encodedControl = PathConstructs(rawValue: 32)
    /// `.` or `..` as a segment, plain or encoded, with a path parameter (`..;x`) or not, between
    /// slashes of any kind. Never allowed.
    package static let dotSegment = PathConstructs(rawValue: 64)

    /// Two slashes in a row. Not malformed, but see ``PathReading``; as all below.
    package static let emptySegment = PathConstructs(rawValue: 128)
    /// A semicolon.
    package static let pathParameter = PathConstructs(rawValue: 256)
    /// A slash at the end of a path that has segments.
    package static let trailingSlash = PathConstructs(rawValue: 512)
    /// A percent-encoding, of whatever byte.
    package static let escape = PathConstructs(rawValue: 1024)
    /// `%3B`.
    package static let encodedParameter = PathConstructs(rawValue: 2048)

    /// What is no fault, although servers read it in more than one way.
    package static let readingDependent: PathConstructs = [
        .emptySegment, .pathParameter, .trailingSlash, .escape, .encodedParameter,
    ]

    /// What a path may have that makes other segments of it in another reading.
    package static let unplain = readingDependent.union([.backslash, .encodedSlash])
        .union(.encodedBackslash)
}
