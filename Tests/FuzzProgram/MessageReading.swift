import Foundation
import FuzzTargets
import HTTPWire

/// Tells how messages are read: for each a line of JSON, as the second reading compares it.
///
/// The input is a sequence of a kind, one byte (`q` a request, otherwise the first letter of the
/// method that a response answers: `g`, `h`, `p`), a length, four bytes in network order, and the
/// bytes. The output has a line for each, and is flushed after it.
enum MessageReading {
    static func run() {
        let input = FileHandle.standardInput
        while let head = read(input, 5) {
            let count = head[1...].reduce(0) { $0 << 8 | Int($1) }
            guard let bytes = read(input, count) else { return }
            let object = head[0] == UInt8(ascii: "q") ? request(bytes) : response(bytes, head[0])
            guard
                var line = try? JSONSerialization.data(withJSONObject: object, options: .sortedKeys)
            else { preconditionFailure("MessageReading: only strings, numbers and lists") }
            line.append(0x0A)
            FileHandle.standardOutput.write(line)
        }
    }

    private static func read(_ input: FileHandle, _ count: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        while bytes.count < count {
            guard let more = try? input.read(upToCount: count - bytes.count), !more.isEmpty else {
                return nil
            }
            bytes += more
        }
        return bytes
    }

    private static func request(_ bytes: [UInt8]) -> [String: Any] {
        let stream = RequestStream([bytes])
        var end: (String, String) =
            switch stream.end {
            case .idle: ("idle", "")
            case .insideHead: ("inside-head", "")
            case .insideBody: ("inside-body", "")
            case .closed: ("closed", "")
            case .rejected(let reason): ("rejected", reason.rawValue)
            }
        // A head that was forwarded before its content turned out to be malformed.
        if end.0 == "rejected", stream.open != nil { end.0 = "aborted" }
        return [
            "end": end.0, "reason": end.1,
            "messages": stream.messages.map(object),
            "open": stream.open.map { [object($0)] } ?? [],
        ]
    }

    private static func object(_ message: RequestStream.Message) -> [String: Any] {
        [
            "method": text(message.method), "target": text(message.target),
            "authority": text(message.authority), "framing": text(message.framing),
            "persistent": message.isPersistent, "fields": message.fields.map(text),
            "body": text(message.body), "trailers": message.trailers.map(text),
        ]
    }

    private static func response(_ bytes: [UInt8], _ kind: UInt8) -> [String: Any] {
        let method: Method =
            switch kind {
            case UInt8(ascii: "h"): .head
            case UInt8(ascii: "p"): .post
            default: .get
            }
        let stream = ResponseStream([bytes], to: method)
        let end: (String, String) =
            switch stream.end {
            case .complete: ("complete", "")
            case .rejected(let reason): ("rejected", reason.rawValue)
            case .aborted(let reason): ("aborted", reason.rawValue)
            }
        return [
            "end": end.0, "reason": end.1, "status": stream.status, "interim": stream.interim,
            "framing": text(stream.framing), "body": text(stream.body),
            "trailers": stream.trailers.map(text), "leftover": stream.leftover,
            "persistent": stream.isPersistent,
        ]
    }

    private static func text(_ framing: BodyFraming) -> String {
        switch framing {
        case .none: "none"
        case .length(let count): "length \(count)"
        case .chunked: "chunked"
        case .untilClose: "until-close"
        }
    }

    /// Each byte as the character of its number (ISO 8859-1), which JSON can hold.
    private static func text(_ bytes: [UInt8]) -> String {
        String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}
