import Encodings

/// A message between two processes of a gateway while one takes over from the other: see `Upgrade`.
/// Each is one message of their socket.
enum HandoverMessage: Equatable {
    /// A listening socket that is handed over, in the order of the configuration, the operators'
    /// last.
    struct Socket: Equatable {
        let address: String
        /// Whether it belongs to the service manager.
        let isLent: Bool
        /// One for each event loop.
        let count: Int
    }

    /// From the old process, first: the things to take over.
    ///
    /// - store: the name of the store.
    case plan(store: String, sockets: [Socket])
    /// Descriptors of the sockets, in their order; in several messages if necessary.
    case sockets
    /// From the new process: it could serve.
    case ready
    /// From the new process: why it can't serve.
    case failed(String)
    /// From the new process, each second until it has everything: it does not hang.
    case alive
    /// From the old process: a piece of the state. The first one carries the store's descriptors.
    case state([UInt8], isLast: Bool)
    /// From the new process: it has everything, but decides nothing yet.
    case taken
    /// From the old process: it decides nothing any more.
    case go
    /// From the old process, afterwards, and the answer.
    case question(UInt64, [UInt8])
    case answer(UInt64, [UInt8])

    /// The version of this protocol. Another version of the program may have another one.
    static let version: UInt8 = 5
    /// The most bytes of a message.
    static let bytesMax = 96 << 10
    /// The most bytes of state in one message.
    static let pieceMax = 64 << 10
    private static let textMax = 16 << 10
    private static let socketsMax = 1_024
    static let loopsMax = 1_024

    /// The first byte of a message.
    private enum Kind: UInt8 {
        case plan = 1
        case sockets, ready, failed, state, taken, go, question, answer, alive
    }

    private var kind: Kind {
        switch self {
        case .plan: .plan
        case .sockets: .sockets
        case .ready: .ready
        case .failed: .failed
        case .state: .state
        case .taken: .taken
        case .go: .go
        case .question: .question
        case .answer: .answer
        case .alive: .alive
        }
    }

    var bytes: [UInt8] {
        var out = ByteWriter()
        out.byte(kind.rawValue)
        switch self {
        case .plan(let store, let sockets):
            out.byte(Self.version)
            out.text(store)
            out.word(UInt64(sockets.count))
            for socket in sockets {
                out.text(socket.address)
                out.flag(socket.isLent)
                out.word(UInt64(socket.count))
            }
        case .failed(let text): out.text(String(text.prefix(Self.textMax / 4)))
        case .state(let piece, let isLast):
            out.flag(isLast)
            out.block(piece)
        case .question(let number, let content), .answer(let number, let content):
            out.word(number)
            out.block(content)
        case .sockets, .ready, .alive, .taken, .go: break
        }
        return out.bytes
    }

    /// Reads a message.
    ///
    /// - Throws: when it is invalid, or of another version.
    init(_ bytes: [UInt8]) throws(ByteReader.Fault) {
        var bytes = ByteReader(bytes)
        guard let kind = Kind(rawValue: try bytes.byte()) else { throw ByteReader.Fault() }
        switch kind {
        case .plan: self = try Self.plan(&bytes)
        case .sockets: self = .sockets
        case .ready: self = .ready
        case .alive: self = .alive
        case .failed: self = .failed(try bytes.text(max: Self.textMax))
        case .state:
            let isLast = try bytes.flag()
            self = .state(try bytes.block(max: Self.pieceMax), isLast: isLast)
        case .taken: self = .taken
        case .go: self = .go
        case .question: self = .question(try bytes.word(), try bytes.block())
        case .answer: self = .answer(try bytes.word(), try bytes.block())
        }
        try bytes.end()
    }

    private static func plan(_ bytes: inout ByteReader) throws(ByteReader.Fault) -> Self {
        guard try bytes.byte() == version else { throw ByteReader.Fault() }
        let store = try bytes.text(max: textMax)
        let count = try bytes.word()
        guard count <= UInt64(socketsMax) else { throw ByteReader.Fault() }
        var sockets: [Socket] = []
        for _ in 0..<count {
            let address = try bytes.text(max: textMax)
            let isLent = try bytes.flag()
            let loops = try bytes.word()
            guard loops >= 1, loops <= UInt64(loopsMax) else { throw ByteReader.Fault() }
            sockets.append(Socket(address: address, isLent: isLent, count: Int(loops)))
        }
        return .plan(store: store, sockets: sockets)
    }
}
