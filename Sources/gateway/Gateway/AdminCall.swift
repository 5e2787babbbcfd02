package import ConfigurationReading
import Dispatch
package import Encodings
import EventLoops
package import HTTPWire
package import Proxy
import Services

/// A call of a running gateway's admin listener, by a command.
package enum AdminCall {
    /// Why there is no answer.
    package struct Fault: Error, Sendable {
        /// The fault, and the next step.
        package let text: String
    }

    /// The longest page that is read. The report as JSON takes up to 100 KB for each rule: three
    /// windows, each with 48 versions of the app.
    private static let contentMax = 256 << 20

    /// Makes a call on its own event loop. The process continues until `ended` ends it.
    ///
    /// - place: `nil` where the configuration has no admin listener.
    package static func send(
        _ method: Method,
        _ page: String,
        content: [UInt8] = [],
        to place: AdminPlace?,
        waiting milliseconds: UInt64? = nil,
        ended: @escaping @Sendable (Result<HTTPResponse, Fault>) -> Void
    ) {
        do throws(Fault) {
            let (name, address) = try address(of: place)
            let loop = try loop()
            loop.start()
            loop.perform {
                let client = client(name, address, milliseconds, on: loop)
                var request = HTTPRequest(method, page, authority: "localhost")
                request.content = content
                if let token = place?.token {
                    request.fields.append(("Authorization", token.authorization))
                }
                client.send(request) { result in
                    withExtendedLifetime(client) {}
                    ended(result.mapError { Fault(text: text(of: $0, name)) })
                }
            }
        } catch {
            ended(.failure(error))
        }
    }

    private static func address(of place: AdminPlace?) throws(Fault) -> (String, SocketAddress) {
        guard let admin = place?.address else {
            throw Fault(
                text: "the configuration has no admin listener; add `admin: { address: "
                    + "unix:/run/portcullis/admin.sock }` and restart the gateway"
            )
        }
        guard let address = admin.socketAddress else {
            throw Fault(text: "\(admin.text) is no address to connect to")
        }
        return (admin.text, address)
    }

    private static func loop() throws(Fault) -> EventLoop {
        do throws(SocketError) {
            return try EventLoop(number: 0)
        } catch {
            throw Fault(text: "\(error)")
        }
    }

    private static func client(
        _ name: String,
        _ address: SocketAddress,
        _ milliseconds: UInt64?,
        on loop: EventLoop
    ) -> HTTPClient {
        var settings = HTTPClient.Settings()
        if let milliseconds { settings.totalTimeout = milliseconds }
        settings.contentMax = contentMax
        var origin = OriginSettings(
            name: "admin",
            servers: [OriginServerSettings(name: name, address: address)]
        )
        origin.rules.connectTimeout = settings.totalTimeout
        origin.rules.firstByteTimeout = settings.totalTimeout
        return HTTPClient(origin, settings, on: loop)
    }

    private static func text(of fault: CallFault, _ name: String) -> String {
        switch fault {
        case .unreachable:
            "no gateway answers at \(name); is it running, and may this user connect?"
        case .timedOut, .firstByteTimedOut, .stalled:
            "the gateway at \(name) does not answer in time"
        case .closed, .responseMalformed, .tooManyInterimResponses, .contentTooLarge,
            .targetMalformed:
            "the answer of \(name) can't be read: \(fault)"
        }
    }
}

/// The gateway's answer to a change of a rollout.
package struct RolloutAnswer {
    package let rule: String
    package let from: String
    package let to: String
    package let areAllLoopsTold: Bool
    /// The version of the fleet's orders that it has made; `nil` without a fleet.
    package let order: Int64?
    /// Whether the gateway that was asked alone obeys, until the fleet's database answers.
    package let isPending: Bool

    package init(_ text: Span<UInt8>) throws(JSONError) {
        var reader = JSONReader()
        var texts: [String: String] = [:]
        var flags: [String: Bool] = [:]
        var order: Int64?
        try reader.beginObject(text)
        while let bytes = try reader.nextName(text) {
            let name = String(decoding: bytes, as: UTF8.self)
            switch try reader.scalar(text) {
            case .string(let value): texts[name] = String(decoding: value, as: UTF8.self)
            case .boolean(let value): flags[name] = value
            case .number(let value): order = value
            case .null: throw reader.error("a member of another kind")
            }
        }
        try reader.end(text)
        guard let rule = texts["rule"], let from = texts["from"], let to = texts["to"] else {
            throw reader.error("a member is missing")
        }
        self.rule = rule == "*" ? "all rules" : rule
        (self.from, self.to, self.order) = (from, to, order)
        areAllLoopsTold = flags["all_lanes"] ?? false
        isPending = flags["pending"] ?? false
    }
}

/// The gateway's answer about a change that is not made yet.
package struct ForecastAnswer {
    /// The most lines that are printed.
    private static let linesMax = 8

    package let lines: [String]
    /// The version of the fleet's orders from which it was made; `nil` without a fleet.
    package let order: Int64?
    /// Also `true` where the answer can't be read.
    package let asksConfirmation: Bool

    package init(_ text: Span<UInt8>) {
        let confirm = JSONPointer(tokens: ["confirm"]).string(in: text)
        // An older gateway's answer has none; the order is not compared with others then.
        order = JSONDocument(text, members: ["order"])?.integer("order").map { Int64($0) }
        asksConfirmation = confirm != Array("none".utf8)
        lines = (0..<Self.linesMax).compactMap { place in
            let line = JSONPointer(tokens: ["lines", "\(place)"]).string(in: text)
            return line.map { String(decoding: $0, as: UTF8.self) }
        }
    }
}
