import Glibc

/// A connection that an origin has accepted, as its script sees it.
package final class OriginConnection: Sendable {
    package let wire: Wire
    /// How many were accepted before it.
    package let number: Int
    private unowned let origin: TestOrigin

    init(_ wire: Wire, _ number: Int, of origin: TestOrigin) {
        self.wire = wire
        self.number = number
        self.origin = origin
    }

    /// Sends back what it gets, until that ends.
    package func echo() throws {
        while true {
            if wire.inbox.isEmpty { try wire.receive() }
            let bytes = wire.inbox
            wire.inbox = []
            try wire.send(bytes)
        }
    }

    /// Reads the next head; `nil` when the gateway has ended the connection before it.
    package func nextHead() throws -> WireRequest? {
        do {
            guard !wire.inbox.isEmpty || wire.isReadable(within: Wire.patienceMilliseconds) else {
                throw WireFault.timedOut
            }
            // Noted before it is taken off the socket: nobody may see it in neither place.
            origin.change(number) { $0.isAtBoundary = false }
            if wire.inbox.isEmpty { try wire.receive() }
        } catch WireFault.ended {
            return nil
        } catch WireFault.reset {
            return nil
        }
        let request = try wire.readRequestHead()
        origin.change(number) { $0.heads.append(request) }
        return request
    }

    /// Reads the content that follows a head; the request is complete then.
    package func finish(_ request: WireRequest) throws -> WireRequest {
        var request = request
        try wire.readContent(of: &request)
        origin.change(number) { log in
            log.requests.append(request)
            log.isAtBoundary = wire.inbox.isEmpty
        }
        return request
    }

    /// Notes a request that came whole in another protocol.
    func note(_ request: WireRequest) {
        origin.change(number) { log in
            log.heads.append(request)
            log.requests.append(request)
            log.isAtBoundary = wire.inbox.isEmpty
        }
    }

    /// Reads the next request; `nil` when the gateway has ended the connection before it.
    package func nextRequest() throws -> WireRequest? { try nextHead().map(finish) }

    /// Sends a response with a length.
    package func answer(
        _ status: Int,
        body: String = "",
        fields: String = "",
        to request: WireRequest
    ) throws {
        let length = "Content-Length: \(body.utf8.count)\r\n"
        let content = request.method == "HEAD" ? "" : body
        try wire.send("HTTP/1.1 \(status) OK\r\n\(length)\(fields)\r\n\(content)")
    }

    /// Waits for the gateway to end the connection; what it sent before is dropped.
    package func awaitEnd() throws {
        do {
            while true {
                try wire.receive()
                wire.inbox = []
            }
        } catch WireFault.ended {
        } catch WireFault.reset {
        }
    }
}
