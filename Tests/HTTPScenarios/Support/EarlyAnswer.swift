import LoopbackKit

/// An origin that answers a request before it has its content, and then resets the connection.
///
/// All of it comes while the gateway's event loop stands still, in this order: content from the
/// client, the answer, the reset. So the gateway always finds the reset when it writes the content,
/// and it makes no difference which packet the kernel handles first.
struct EarlyAnswer: Sendable {
    private let asked = Gate()
    private let due = Gate()
    /// The answer. Each piece is sent by itself.
    let pieces: [String]

    init(_ pieces: [String]) { self.pieces = pieces }

    /// The origin's half.
    func play(_ connection: OriginConnection) throws {
        guard try connection.nextHead() != nil else { return }
        asked.open()
        try due.pass()
        for piece in pieces { try connection.wire.send(piece) }
        // A reset may overtake bytes that were not acknowledged.
        try connection.wire.awaitTaken()
        connection.wire.reset()
    }

    /// The client's half; the final response that it reads.
    func ask(_ gateway: TestGateway, of origin: TestOrigin) throws -> WireResponse {
        let door = try LoopDoor(gateway)
        defer { door.remove() }
        let client = try gateway.connect()
        try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n")
        try asked.pass()
        try door.shut()
        // What fails before it is opened must not leave the event loop standing.
        defer { door.open() }
        try client.send([UInt8](repeating: 0, count: 10_000))
        try client.awaitTaken()
        due.open()
        guard origin.wait(until: { $0.first?.isOpen == false }) else { throw WireFault.timedOut }
        door.open()
        return try client.readFinalResponse(to: "POST")
    }
}
