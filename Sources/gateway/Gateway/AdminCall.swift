package import ConfigurationReading
import Dispatch
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
