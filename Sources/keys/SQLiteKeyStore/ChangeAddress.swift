internal import Glibc

/// The Unix socket on which commands notify a gateway that keys have changed.
///
/// A command sends ``call`` or ``writeCall`` and gets an ``Answer``, one message each. The message
/// only says that there is something to read: the database has the change.
enum ChangeAddress {
    /// The suffix of the database's path.
    static let suffix = ".socket"
    static let call = "changed"
    /// A command that copies the database asks to write all waiting changes first.
    static let writeCall = "write"
    /// The most bytes of a message.
    static let messageMax = 512
    /// The most bytes of a path in an address (unix(7)); another byte ends it.
    private static let pathMax = 107

    /// The answer of a gateway.
    enum Answer: Equatable {
        /// It has read the change, or written the waiting changes.
        case seen
        /// It could not, and refuses all keys until it can.
        case unreadable(String)
        /// It has other files open than commands use.
        case replaced(String)

        var text: String {
            switch self {
            case .seen: "seen"
            case .unreadable(let detail): "unreadable \(detail)"
            case .replaced(let detail): "replaced \(detail)"
            }
        }

        init?(text: String) {
            let words = text.split(separator: " ", maxSplits: 1)
            let detail = words.count > 1 ? String(words[1]) : ""
            switch words.first {
            case "seen": self = .seen
            case "unreadable": self = .unreadable(detail)
            case "replaced": self = .replaced(detail)
            default: return nil
            }
        }
    }

    /// Makes a socket and calls the closure with it and the address of a database's socket; `nil`
    /// when that is not possible. The caller closes the socket.
    ///
    /// - `body`: 0 or more is success, as of `bind` and `connect`.
    static func socket(
        ofDatabase database: String,
        flags: Int32 = 0,
        _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32? {
        let path = database + suffix
        // An address has at most 107 bytes of a path. A longer path is reached through its folder.
        var folder: Int32 = -1
        var name = path
        if path.utf8.count > pathMax {
            folder = Glibc.open(StoreFile.folder(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            guard folder >= 0 else { return nil }
            name = "/proc/self/fd/\(folder)/" + StoreFile.name(of: path)
        }
        defer { if folder >= 0 { Glibc.close(folder) } }
        guard name.utf8.count <= pathMax else {
            errno = ENAMETOOLONG
            return nil
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { bytes in
            // The remaining bytes are zero, and end it.
            bytes.copyBytes(from: name.utf8)
        }
        // Messages keep their boundaries, so that none has to be assembled.
        let type = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | flags
        let descriptor = Glibc.socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { return nil }
        // The C border: an address of one family is read as that of any.
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status >= 0 else {
            let reason = errno
            Glibc.close(descriptor)
            errno = reason
            return nil
        }
        return descriptor
    }

    /// Limits the wait for a message, and for room to send one.
    static func bound(_ descriptor: Int32, seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        let length = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, length)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, length)
    }

    /// - Returns: whether it was sent.
    static func send(_ text: String, to descriptor: Int32) -> Bool {
        let bytes = Array(text.utf8.prefix(messageMax))
        return bytes.span.withUnsafeBytes { bytes in
            // The C border: pointer and count are of one buffer, which outlives the call.
            Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        } == bytes.count
    }

    /// The next message; empty when there is none.
    static func receive(from descriptor: Int32) -> String {
        let bytes = [UInt8](unsafeUninitializedCapacity: messageMax) { buffer, count in
            // At most the buffer's count is written.
            count = max(0, recv(descriptor, buffer.baseAddress, buffer.count, 0))
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// A command's call to the gateway that runs on a database.
enum ChangeCall {
    /// Seconds to wait for an answer. A gateway that starts answers when it has read all keys. A
    /// gateway whose database is locked answers after five seconds.
    static let answerSeconds = 10
    /// The pause between two tries to reach a gateway that has the lock and no socket, since it
    /// starts or ends.
    private static let pauseMilliseconds: Int32 = 20
    private static let triesMax = 100

    /// The result of a call.
    enum Outcome: Equatable {
        /// No gateway runs.
        case nobody
        case answered(ChangeAddress.Answer)
        /// A gateway runs, and has not answered.
        case unheard(String)
    }

    /// Notifies the gateway that keys have changed.
    static func changed(database: String) -> Outcome { make(ChangeAddress.call, database) }

    /// Asks the gateway to write all admissions so far.
    static func write(database: String) -> Outcome { make(ChangeAddress.writeCall, database) }

    private static func make(_ call: String, _ database: String) -> Outcome {
        for _ in 0..<triesMax {
            let descriptor = ChangeAddress.socket(ofDatabase: database) {
                ChangeAddress.bound($0, seconds: answerSeconds)
                return connect($0, $1, $2)
            }
            let code = errno
            let reason = StoreFile.lastError
            if let descriptor {
                defer { Glibc.close(descriptor) }
                return ask(call, descriptor)
            }
            guard StoreLock.holder(ofDatabase: database) != nil else { return .nobody }
            guard [ENOENT, ECONNREFUSED].contains(code) else { return .unheard(reason) }
            poll(nil, 0, pauseMilliseconds)
        }
        return .unheard("\(database)\(ChangeAddress.suffix) is not there, or is another's")
    }

    private static func ask(_ call: String, _ descriptor: Int32) -> Outcome {
        guard ChangeAddress.send(call, to: descriptor) else { return .unheard(StoreFile.lastError) }
        let text = ChangeAddress.receive(from: descriptor)
        guard let answer = ChangeAddress.Answer(text: text) else {
            return .unheard("no answer within \(answerSeconds) seconds")
        }
        return .answered(answer)
    }
}
