import Foundation

/// A date as HTTP writes it, in each of the three forms that a recipient has to accept
/// (RFC 9110 §5.6.7).
enum HTTPDate {
    private static let formats = [
        "EEE, dd MMM yyyy HH:mm:ss zzz", "EEEE, dd-MMM-yy HH:mm:ss zzz", "EEE MMM d HH:mm:ss yyyy",
    ]
    /// The longest is that of RFC 850: `Wednesday, 09-Nov-94 08:49:37 GMT`.
    private static let bytesMax = 40

    static func date(_ text: String) -> Date? {
        guard text.utf8.count <= bytesMax else { return nil }
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        for format in formats {
            formatter.dateFormat = format
            if let date = formatter.date(from: text) { return date }
        }
        return nil
    }
}
