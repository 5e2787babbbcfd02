import Encodings

/// The state that one process of a gateway hands over to its successor, each part in its owner's
/// form.
struct HandoverState: Equatable, Sendable {
    /// The issuer's state: spent challenges, and the keys that recognise challenges.
    var challenges: [UInt8]
    /// The state of the table of sessions.
    var sessions: [UInt8]
    /// The state of the client that asks Apple about devices: the used tokens.
    var tokens: [UInt8]
    /// The keys of clients' TLS tickets.
    var tickets: [UInt8]
    /// The orders of operators about rollouts, in the form of their file; in a fleet with their
    /// version, and with those that the database does not have.
    var orders: [UInt8]
    /// The servers that operators have drained.
    var drained: [String]

    /// The most servers that can be drained; a configuration has fewer.
    private static let drainedMax = 1 << 16

    var bytes: [UInt8] {
        var out = ByteWriter()
        out.block(challenges)
        out.block(sessions)
        out.block(tokens)
        out.block(tickets)
        out.block(orders)
        out.word(UInt64(drained.count))
        for server in drained { out.text(server) }
        return out.bytes
    }
}

extension HandoverState {
    init(_ bytes: [UInt8]) throws(ByteReader.Fault) {
        var bytes = ByteReader(bytes)
        challenges = try bytes.block()
        sessions = try bytes.block()
        tokens = try bytes.block()
        tickets = try bytes.block()
        orders = try bytes.block()
        let count = try bytes.word()
        guard count <= UInt64(Self.drainedMax) else { throw ByteReader.Fault() }
        drained = []
        for _ in 0..<count { drained.append(try bytes.text()) }
        try bytes.end()
    }
}
