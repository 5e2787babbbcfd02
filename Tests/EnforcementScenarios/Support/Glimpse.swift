import Foundation
import LoopbackKit

/// What a client got of a response.
struct Glimpse: Equatable, Sendable {
    /// 0 when not even a head came.
    var status = 0
    /// The `reason` of a problem document.
    var reason = ""
    /// Whether the response came to its end.
    var isWhole = false

    /// The head came, and the end never.
    static let cutOff = Glimpse(status: 200)
    static let fine = Glimpse(status: 200, isWhole: true)

    static func refused(_ status: Int, _ reason: String) -> Glimpse {
        Glimpse(status: status, reason: reason, isWhole: true)
    }

    init(status: Int = 0, reason: String = "", isWhole: Bool = false) {
        self.status = status
        self.reason = reason
        self.isWhole = isWhole
    }

    /// Sends a request on a connection of its own, and takes whatever comes.
    init(port: UInt16, _ request: String) throws {
        let wire = try Wire(port: port)
        self.init()
        var body: [UInt8] = []
        // An end at any place is one of the outcomes.
        do {
            // The answer may come, and with it the end, before all is sent.
            try? wire.send(request)
            var head = try wire.readHead()
            while try head.status() < 200 { head = try wire.readHead() }
            status = try head.status()
            try wire.streamContent(of: head, in: .response) { body += $0 }
            isWhole = true
        } catch {}
        let text = String(decoding: body, as: UTF8.self)
        if let start = text.range(of: #""reason":""#) {
            reason = String(text[start.upperBound...].prefix { $0 != "\"" })
        }
    }
}
