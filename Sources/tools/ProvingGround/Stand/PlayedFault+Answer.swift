import Foundation
import LoopbackSockets

extension PlayedFault {
    /// The answer that the fault writes.
    ///
    /// In its fields `{date}` is the time, `{date+30}` one that is 30 seconds later, `{wrong+30}`
    /// the same by a clock that is a day late, and `{port}` the port that the client asked.
    func answer(to request: ServedRequest) -> ServedAnswer {
        let port = request["Host"]?.split(separator: ":").last.map(String.init) ?? ""
        let filled = fields.map { field in
            (name: field.name, value: Self.filled(field.value.replacing("{port}", with: port)))
        }
        return ServedAnswer(status, fields: filled, content: Array(content.utf8))
    }

    /// A day.
    private static let lateness = 86_400.0

    private static func filled(_ text: String) -> String {
        guard text.hasPrefix("{"), text.hasSuffix("}") else { return text }
        let words = text.dropFirst().dropLast().split(separator: "+")
        let seconds = words.count == 2 ? Double(words[1]) ?? 0 : 0
        switch words.first {
        case "date": return date(seconds)
        case "wrong": return date(seconds - lateness)
        default: return text
        }
    }

    /// A date of HTTP (RFC 9110 §5.6.7).
    private static func date(_ seconds: Double) -> String {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return format.string(from: Date(timeIntervalSinceNow: seconds))
    }
}
