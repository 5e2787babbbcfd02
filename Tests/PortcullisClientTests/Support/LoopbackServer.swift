import Foundation
import LoopbackKit

/// An HTTP/1.1 server on loopback that answers as a test says, and keeps what came.
final class LoopbackServer: Sendable {
    /// A request as it came over the wire.
    struct Request: Sendable {
        /// Lines of the head, the first one being the request line.
        let head: [String]
        /// How many bytes of content came, and the first of them.
        var contentCount = 0
        var content = Data()

        var target: String {
            let parts = (head.first ?? "").split(separator: " ")
            return parts.count > 1 ? String(parts[1]) : ""
        }

        func value(_ name: String) -> String? {
            let start = name.lowercased() + ":"
            let line = head.dropFirst().first { $0.lowercased().hasPrefix(start) }
            return line.map { $0.dropFirst(start.count).trimmingCharacters(in: .whitespaces) }
        }
    }

    /// Pieces of the answer, head included, written one after the other.
    typealias Script = @Sendable (Request) -> [Data]
    /// Runs before the piece of this number is written.
    typealias Before = @Sendable (Int) -> Void

    let port: UInt16
    private let descriptor: Int32
    private let script: Script
    private let before: Before
    private let lock = NSLock()
    /// `nonisolated(unsafe)`: reached under the lock only.
    nonisolated(unsafe) private var requests: [Request] = []

    /// The most bytes of content that are kept.
    private static let keptMax = 1 << 20

    init(_ script: @escaping Script, before: @escaping Before = { _ in }) throws {
        (descriptor, port) = try LoopbackKit.listening()
        (self.script, self.before) = (script, before)
        let descriptor = descriptor
        Thread.detachNewThread { [weak self] in
            while true {
                let client = accept(descriptor, nil, nil)
                guard client >= 0 else { return }
                guard let server = self else {
                    close(client)
                    return
                }
                Thread.detachNewThread {
                    server.serve(client)
                    close(client)
                }
            }
        }
    }

    deinit {
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }

    /// A server that answers with these fields and this content.
    convenience init(_ status: String, _ fields: [String] = [], content: Data = Data()) throws {
        try self.init { _ in
            [Self.head(status, fields + ["Content-Length: \(content.count)"]), content]
        }
    }

    static func head(_ status: String, _ fields: [String]) -> Data {
        Data((["HTTP/1.1 \(status)"] + fields + ["", ""]).joined(separator: "\r\n").utf8)
    }

    var url: String { "http://127.0.0.1:\(port)" }

    var seen: [Request] {
        lock.lock()
        defer { lock.unlock() }
        return requests
    }

    private func serve(_ client: Int32) {
        var buffer = Data()
        while var request = Self.request(client, &buffer) {
            if let length = request.value("Content-Length").flatMap({ Int($0) }) {
                while request.contentCount < length {
                    if buffer.isEmpty {
                        let piece = Self.read(client)
                        if piece.isEmpty { return }
                        buffer = piece
                    }
                    let taken = buffer.prefix(length - request.contentCount)
                    request.contentCount += taken.count
                    let room = Self.keptMax - request.content.count
                    request.content.append(taken.prefix(room))
                    buffer = Data(buffer.dropFirst(taken.count))
                }
            }
            lock.lock()
            requests.append(request)
            lock.unlock()
            for (place, piece) in script(request).enumerated() {
                before(place)
                if !Self.write(client, piece) { return }
            }
        }
    }

    private static func request(_ client: Int32, _ buffer: inout Data) -> Request? {
        let end = Data("\r\n\r\n".utf8)
        while true {
            if let range = buffer.range(of: end) {
                let text = String(decoding: buffer[..<range.lowerBound], as: UTF8.self)
                buffer = Data(buffer[range.upperBound...])
                return Request(head: text.components(separatedBy: "\r\n"))
            }
            let piece = read(client)
            if piece.isEmpty { return nil }
            buffer.append(piece)
        }
    }

    private static func read(_ client: Int32) -> Data {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = recv(client, &bytes, bytes.count, 0)
        return count > 0 ? Data(bytes[..<count]) : Data()
    }

    private static func write(_ client: Int32, _ data: Data) -> Bool {
        var rest = data[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                send(client, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
