/// A client of HTTP/2 that sends whatever frames a test wants, and reads all that comes.
///
/// Heads are sent as literals, so that they can hold what no honest encoder writes.
package final class HTTP2Client {
    /// A frame's types (RFC 9113 §6).
    package enum FrameType: UInt8 {
        case data = 0, headers, priority, reset, settings, push, ping, goAway, windowUpdate
        case continuation
        case unknown = 0xFA
    }

    package struct Frame {
        package let type: UInt8
        package let flags: UInt8
        package let id: UInt32
        package let payload: [UInt8]

        /// The code of RST_STREAM or GOAWAY.
        package var code: UInt32? {
            switch FrameType(rawValue: type) {
            case .reset: HTTP2Client.number(payload.prefix(4))
            case .goAway: HTTP2Client.number(payload.dropFirst(4).prefix(4))
            default: nil
            }
        }
    }

    /// What came on a stream.
    package struct Answer {
        package var interim: [Int] = []
        package var status = 0
        package var fields: [(name: String, value: String)] = []
        package var trailers: [(name: String, value: String)] = []
        package var content: [UInt8] = []
        package var isComplete = false
        /// The code of RST_STREAM.
        package var reset: UInt32?

        package func value(_ name: String) -> String? {
            fields.first { $0.name == name }?.value
        }

        package var text: String { String(decoding: content, as: UTF8.self) }
    }

    /// RFC 9113 §4.2, as long as no SETTINGS say otherwise.
    private static let payloadMax = 16384
    package static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    package static let (endsStream, endsHead): (UInt8, UInt8) = (0x1, 0x4)

    package let wire: Wire
    private let inflater = FieldInflater()
    private var nextID: UInt32 = 1
    private var answers: [UInt32: Answer] = [:]
    /// Codes of all GOAWAY frames, and the last stream of each.
    package private(set) var goAways: [(last: UInt32, code: UInt32)] = []
    package private(set) var settings: [UInt32: UInt32] = [:]
    /// Answers to pings that came.
    package private(set) var pongs = 0
    /// Bytes of content that the gateway takes, on the connection and on streams that had some.
    private var connectionWindow = 65_535
    private var windows: [UInt32: Int] = [:]
    /// Whether windows open by themselves as content comes.
    package var opensWindows = true

    /// - settings: as numbers and values.
    package init(_ wire: Wire, settings: [(id: UInt16, value: UInt32)] = []) throws {
        self.wire = wire
        var payload: [UInt8] = []
        for (id, value) in settings {
            payload += Array(Self.bytes(UInt32(id))[2...]) + Self.bytes(value)
        }
        try wire.send(Self.preface + Self.frame(.settings, 0, 0, payload))
    }

    // MARK: Sending

    package static func bytes(_ number: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }

    package static func number(_ bytes: some Sequence<UInt8>) -> UInt32 {
        bytes.reduce(0) { $0 << 8 | UInt32($1) }
    }

    package static func frame(
        _ type: FrameType,
        _ flags: UInt8,
        _ id: UInt32,
        _ payload: [UInt8] = []
    ) -> [UInt8] {
        Array(bytes(UInt32(payload.count))[1...]) + [type.rawValue, flags] + bytes(id) + payload
    }

    /// A field as a literal without indexing (RFC 7541 §6.2.2).
    package static func field(_ name: [UInt8], _ value: [UInt8]) -> [UInt8] {
        [0] + length(name.count) + name + length(value.count) + value
    }

    private static func length(_ count: Int) -> [UInt8] {
        guard count >= 127 else { return [UInt8(count)] }
        var rest = count - 127
        var bytes: [UInt8] = [127]
        while rest >= 128 {
            bytes.append(UInt8(rest % 128) | 128)
            rest /= 128
        }
        return bytes + [UInt8(rest)]
    }

    package static func block(_ fields: [(String, String)]) -> [UInt8] {
        fields.flatMap { field(Array($0.utf8), Array($1.utf8)) }
    }

    package static func get(_ path: String = "/", _ more: [(String, String)] = []) -> [(
        String, String
    )] {
        [(":method", "GET"), (":scheme", "http"), (":authority", "a.test"), (":path", path)] + more
    }

    package static func post(_ path: String = "/", _ more: [(String, String)] = []) -> [(
        String, String
    )] {
        [(":method", "POST"), (":scheme", "http"), (":authority", "a.test"), (":path", path)] + more
    }

    package func send(
        _ type: FrameType,
        flags: UInt8 = 0,
        on id: UInt32 = 0,
        _ payload: [UInt8] = []
    ) throws {
        try wire.send(Self.frame(type, flags, id, payload))
    }

    /// The next stream's number.
    package func nextStream() -> UInt32 {
        defer { nextID += 2 }
        return nextID
    }

    /// Sends a head.
    @discardableResult
    package func open(_ fields: [(String, String)], ends: Bool = true) throws -> UInt32 {
        let id = nextStream()
        try wire.send(Self.head(fields, on: id, ends: ends))
        return id
    }

    /// The frames of a head.
    static func head(_ fields: [(String, String)], on id: UInt32, ends: Bool) -> [UInt8] {
        let last: UInt8 = ends ? endsStream : 0
        let block = block(fields)
        var start = min(block.count, payloadMax)
        let ending = start == block.count ? endsHead : 0
        var frames = frame(.headers, last | ending, id, Array(block[..<start]))
        while start < block.count {
            let end = min(start + payloadMax, block.count)
            let flags = end == block.count ? endsHead : 0
            frames += frame(.continuation, flags, id, Array(block[start..<end]))
            start = end
        }
        return frames
    }

    /// Sends content in frames of at most 16 KiB. The windows are the test's business.
    package func send(_ content: [UInt8], on id: UInt32, ends: Bool = true) throws {
        var start = 0
        repeat {
            let end = min(start + 16384, content.count)
            let isLast = ends && end == content.count
            try send(
                .data,
                flags: isLast ? Self.endsStream : 0,
                on: id,
                Array(content[start..<end])
            )
            start = end
        } while start < content.count
    }

    /// Sends content as the gateway's windows open, unless the stream is reset before.
    package func sendInTime(_ content: [UInt8], on id: UInt32) throws {
        var start = 0
        repeat {
            let window = windows[id] ?? Int(settings[4] ?? 65_535)
            let end = min(start + min(Self.payloadMax, connectionWindow, window), content.count)
            guard end > start || content.isEmpty else {
                if answers[id]?.reset != nil { return }
                try readFrame()
                continue
            }
            connectionWindow -= end - start
            windows[id] = window - (end - start)
            let flags = end == content.count ? Self.endsStream : 0
            try send(.data, flags: flags, on: id, Array(content[start..<end]))
            start = end
        } while start < content.count
    }

    /// Sends content as the gateway's windows open, until they stay closed for this time; how much
    /// that was.
    package func sendUntilStalled(
        _ content: [UInt8],
        on id: UInt32,
        milliseconds: Int32
    ) throws -> Int {
        var start = 0
        while start < content.count {
            let window = windows[id] ?? Int(settings[4] ?? 65_535)
            let end = min(start + min(Self.payloadMax, connectionWindow, window), content.count)
            guard end > start else {
                let goesOn = !wire.inbox.isEmpty || wire.isReadable(within: milliseconds)
                guard goesOn else { return start }
                try readFrame()
                continue
            }
            connectionWindow -= end - start
            windows[id] = window - (end - start)
            try send(.data, on: id, Array(content[start..<end]))
            start = end
        }
        return start
    }

    package func openWindow(_ id: UInt32, by count: UInt32) throws {
        try send(.windowUpdate, on: id, Self.bytes(count))
    }

    // MARK: Receiving

    /// Takes a frame and notes what it says.
    @discardableResult
    package func readFrame() throws -> Frame {
        let head = try wire.take(9)
        let frame = Frame(
            type: head[3],
            flags: head[4],
            id: Self.number(head[5...8]) & 0x7FFF_FFFF,
            payload: try wire.take(Int(Self.number(head[0...2])))
        )
        try note(frame)
        return frame
    }

    private func note(_ frame: Frame) throws {
        let isLast = frame.flags & Self.endsStream != 0
        switch FrameType(rawValue: frame.type) {
        case .headers:
            noteHead(try inflater.read(frame.payload), frame.id)
            if isLast { answers[frame.id, default: Answer()].isComplete = true }
        case .data:
            answers[frame.id, default: Answer()].content += frame.payload
            if isLast { answers[frame.id]?.isComplete = true }
            if opensWindows, !frame.payload.isEmpty {
                try openWindow(0, by: UInt32(frame.payload.count))
                if !isLast { try openWindow(frame.id, by: UInt32(frame.payload.count)) }
            }
        case .reset: answers[frame.id, default: Answer()].reset = frame.code
        case .goAway: goAways.append((Self.number(frame.payload.prefix(4)), frame.code ?? 0))
        case .settings where frame.flags & 1 == 0:
            let before = Int(settings[4] ?? 65_535)
            defer {
                let change = Int(settings[4] ?? 65_535) - before
                windows = windows.mapValues { $0 + change }
            }
            for start in stride(from: 0, to: frame.payload.count - 5, by: 6) {
                let id = Self.number(frame.payload[start..<start + 2])
                settings[id] = Self.number(frame.payload[start + 2..<start + 6])
            }
            try send(.settings, flags: 1)
        case .ping where frame.flags & 1 == 1: pongs += 1
        case .windowUpdate:
            let step = Int(Self.number(frame.payload))
            if frame.id == 0 {
                connectionWindow += step
            } else {
                windows[frame.id] = (windows[frame.id] ?? Int(settings[4] ?? 65_535)) + step
            }
        default: break
        }
    }

    private func noteHead(_ fields: [(name: String, value: String)], _ id: UInt32) {
        var answer = answers[id] ?? Answer()
        defer { answers[id] = answer }
        guard answer.status == 0 else { return answer.trailers = fields }
        let status = fields.first { $0.name == ":status" }.flatMap { Int($0.value) } ?? 0
        guard status >= 200 else { return answer.interim.append(status) }
        answer.status = status
        answer.fields = fields
    }

    /// Reads until a stream has ended, or the connection.
    package func answer(_ id: UInt32) throws -> Answer {
        try readUntil { answers[id]?.isComplete == true || answers[id]?.reset != nil }
        return answers[id] ?? Answer()
    }

    /// What has come so far on a stream.
    package func soFar(_ id: UInt32) -> Answer { answers[id] ?? Answer() }

    package func readUntil(_ isDone: () -> Bool) throws {
        while !isDone() { try readFrame() }
    }

    /// One request and its answer.
    package func ask(_ fields: [(String, String)], _ content: [UInt8]? = nil) throws -> Answer {
        let id = try open(fields, ends: content == nil)
        if let content { try sendInTime(content, on: id) }
        return try answer(id)
    }

    /// Reads to the end of the connection.
    ///
    /// - Returns: the code of the last GOAWAY; `nil` without one.
    package func lastCode() throws -> UInt32? {
        do {
            while true { try readFrame() }
        } catch WireFault.ended {
        } catch WireFault.reset {}
        return goAways.last?.code
    }
}
