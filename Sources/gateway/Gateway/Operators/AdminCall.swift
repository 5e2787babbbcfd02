package import ConfigurationReading
import Dispatch
package import Encodings
import EventLoops
package import HTTPWire
package import Proxy
package import Services

/// A call of a running gateway's admin listeners, by a command.
package enum AdminCall {
    /// Why there is no answer.
    package struct Fault: Error, Sendable {
        /// The fault, and the next step.
        package let text: String
    }

    /// The longest page that is read. The report as JSON takes up to 100 KB for each rule: three
    /// windows, each with 48 versions of the app.
    private static let contentMax = 256 << 20

    /// A page or a call, and its content.
    package struct Request: Sendable {
        let method: Method
        let page: String
        let content: [UInt8]
        /// The kind that a listener has to serve.
        let access: OperatorGate.Access
        /// The longest wait for the answer; `nil` for that of every client.
        let milliseconds: UInt64?

        package init(
            _ method: Method,
            _ page: String,
            at access: OperatorGate.Access,
            content: [UInt8] = [],
            waiting milliseconds: UInt64? = nil
        ) {
            (self.method, self.page, self.content) = (method, page, content)
            (self.access, self.milliseconds) = (access, milliseconds)
        }

        /// What is not known of a change that was sent and not answered, and the next step; empty
        /// for a request that changes nothing.
        fileprivate var uncertainty: String {
            switch page {
            case "/rollout/change":
                "; it is not known whether the order holds, since it may still take effect; next: "
                    + "`portcullis rollout` lists what holds"
            case "/origins/drain", "/origins/undrain":
                "; it is not known whether the change holds, since it may still take effect; next: "
                    + "`portcullis origins list` shows how the servers stand"
            case "/upgrade":
                "; it is not known which process serves; next: the gateway's log says how the "
                    + "upgrade went"
            default: ""
            }
        }
    }

    /// Asks the first listener that serves such requests, and the next one where no gateway answers
    /// there. On its own event loop; the process continues until `ended` ends it.
    ///
    /// - listeners: all of the configuration.
    package static func send(
        _ request: Request,
        to listeners: [AdminListener],
        ended: @escaping @Sendable (Result<HTTPResponse, Fault>) -> Void
    ) {
        do throws(Fault) {
            let serving = listeners.filter { $0.serves.contains(request.access) }
            guard !serving.isEmpty else { throw unserved(listeners, request.access) }
            let loop = try loop()
            loop.start()
            loop.perform { send(request, to: serving[...], on: loop, ended) }
        } catch {
            ended(.failure(error))
        }
    }

    private static func send(
        _ request: Request,
        to listeners: ArraySlice<AdminListener>,
        on loop: EventLoop,
        _ ended: @escaping @Sendable (Result<HTTPResponse, Fault>) -> Void
    ) {
        guard let listener = listeners.first else { return }
        let rest = listeners.dropFirst()
        let name = listener.address.text
        guard let address = listener.address.socketAddress else {
            return ended(.failure(Fault(text: "\(name) is no address to connect to")))
        }
        let client = client(name, address, waiting: request.milliseconds, on: loop)
        var sent = HTTPRequest(request.method, request.page, authority: "localhost")
        sent.content = request.content
        if let token = listener.token {
            sent.fields.append(("Authorization", token.authorization))
        }
        client.send(sent) { result in
            withExtendedLifetime(client) {}
            // Nothing was sent, so the next one may be asked.
            if case .failure(.unreachable) = result, !rest.isEmpty {
                return send(request, to: rest, on: loop, ended)
            }
            ended(result.mapError { Fault(text: text(of: $0, name, request)) })
        }
    }

    private static func unserved(
        _ listeners: [AdminListener],
        _ access: OperatorGate.Access
    ) -> Fault {
        let next =
            "add `- address: unix:/run/portcullis/admin.sock` to `admin` and restart the "
            + "gateway"
        guard !listeners.isEmpty else {
            return Fault(text: "the configuration has no admin listener; \(next)")
        }
        let kind =
            switch access {
            case .open, .metrics, .page: "pages"
            case .lookup, .call: "calls"
            }
        return Fault(text: "no admin listener of the configuration serves \(kind); \(next)")
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
        waiting milliseconds: UInt64?,
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

    private static func text(of fault: CallFault, _ name: String, _ request: Request) -> String {
        switch fault {
        case .unreachable:
            "no gateway answers at \(name); is it running, and may this user connect?"
        case .timedOut, .firstByteTimedOut, .stalled:
            "the gateway at \(name) does not answer in time\(request.uncertainty)"
        case .closed, .responseMalformed, .tooManyInterimResponses, .contentTooLarge,
            .targetMalformed:
            "the answer of \(name) can't be read: \(fault)\(request.uncertainty)"
        }
    }
}

/// The gateway's answer to a change of a rollout.
package struct RolloutAnswer {
    package let rule: String
    /// Whether it is of all rules.
    package let isOfAll: Bool
    package let from: String
    package let to: String
    package let areAllLoopsTold: Bool
    /// The version of the fleet's orders that it has made; `nil` without a fleet.
    package let order: Int64?
    /// Whether the gateway that was asked alone obeys, until the fleet's database answers.
    package let isPending: Bool
    /// Why the gateway's file does not have the order yet; `nil` where it has.
    package let unsaved: String?

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
        isOfAll = rule == "*"
        self.rule = isOfAll ? "all rules" : rule
        (self.from, self.to, self.order) = (from, to, order)
        areAllLoopsTold = flags["all_event_loops"] ?? false
        isPending = flags["pending"] ?? false
        unsaved = texts["unsaved"]
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
    /// Why it asks; `nil` where it does not, and where the answer can't be read.
    package let doubt: RolloutForecast.Doubt?

    package init(_ text: Span<UInt8>) {
        let confirm = JSONPointer(tokens: ["confirm"]).string(in: text)
        let document = JSONDocument(text, members: ["order"])
        order = document?.integer("order").map { Int64($0) }
        doubt = JSONPointer(tokens: ["doubt"]).string(in: text).flatMap {
            RolloutForecast.Doubt(rawValue: String(decoding: $0, as: UTF8.self))
        }
        asksConfirmation = confirm != Array("none".utf8)
        lines = (0..<Self.linesMax).compactMap { place in
            let line = JSONPointer(tokens: ["lines", "\(place)"]).string(in: text)
            return line.map { String(decoding: $0, as: UTF8.self) }
        }
    }
}
