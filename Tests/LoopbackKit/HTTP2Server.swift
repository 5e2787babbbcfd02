import CNGHTTP2

/// An origin's end of an HTTP/2 connection, for the script of a ``TestOrigin``: it reads frames,
/// and sends whatever frames a test wants.
package final class HTTP2Server {
    package typealias FrameType = HTTP2Client.FrameType
    package typealias Field = (name: String, value: String)

    /// What came on a stream.
    package struct Request {
        package var fields: [Field] = []
        package var trailers: [Field] = []
        package var content: [UInt8] = []
        package var isComplete = false
        /// The code of RST_STREAM.
        package var reset: UInt32?

        package func value(_ name: String) -> String? {
            fields.first { $0.name == name }?.value
        }

        package var path: String { value(":path") ?? "" }
        package var text: String { String(decoding: content, as: UTF8.self) }
    }

    private static let payloadMax = 16_384

    private let connection: OriginConnection
    private let inflater = FieldInflater()
    private var requests: [UInt32: Request] = [:]
    /// Streams whose requests were handed to the script.
    private var served: Set<UInt32> = []
    /// Bytes of content that the gateway takes, on the connection and on streams that had some.
    private var connectionWindow = 65_535
    private var windows: [UInt32: Int] = [:]
    private var initialWindow = 65_535
    /// Pings that came, and answers to pings.
    package private(set) var pings = 0
    package private(set) var pongs = 0
    /// Whether windows open by themselves as content comes.
    package var opensWindows = true
    package var answersPings = true

    /// Reads the preface, and says its settings, as numbers and values.
    package init(
        _ connection: OriginConnection,
        settings: [(id: UInt16, value: UInt32)] = []
    ) throws {
        self.connection = connection
        var payload: [UInt8] = []
        for (id, value) in settings {
            payload += Array(HTTP2Client.bytes(UInt32(id))[2...]) + HTTP2Client.bytes(value)
        }
        try send(.settings, payload)
        let preface = try connection.wire.take(HTTP2Client.preface.count)
        guard preface == HTTP2Client.preface else { throw WireFault.malformed("preface") }
    }

    /// Answers every request with `200` and `ok`.
    package static let friendly: TestOrigin.Script = { connection in
        let server = try HTTP2Server(connection)
        while let (id, _) = try server.nextRequest() { try server.answer(id, content: "ok") }
    }

    // MARK: Sending

    package func send(
        _ type: FrameType,
        flags: UInt8 = 0,
        on id: UInt32 = 0,
        _ payload: [UInt8] = []
    ) throws {
        try connection.wire.send(HTTP2Client.frame(type, flags, id, payload))
    }

    package func sendHead(
        _ id: UInt32,
        _ fields: [(String, String)],
        ends: Bool = false
    ) throws {
        try connection.wire.send(HTTP2Client.head(fields, on: id, ends: ends))
    }

    /// Sends content as the gateway's windows open, unless the stream ends before.
    package func sendContent(_ content: [UInt8], on id: UInt32, ends: Bool) throws {
        var start = 0
        repeat {
            let window = windows[id] ?? initialWindow
            let end = min(start + min(Self.payloadMax, connectionWindow, window), content.count)
            guard end > start || content.isEmpty else {
                if requests[id]?.reset != nil { return }
                try readFrame()
                continue
            }
            connectionWindow -= end - start
            windows[id] = window - (end - start)
            let flags = ends && end == content.count ? HTTP2Client.endsStream : 0
            try send(.data, flags: flags, on: id, Array(content[start..<end]))
            start = end
        } while start < content.count
    }

    /// Sends a whole response.
    package func answer(
        _ id: UInt32,
        _ status: Int = 200,
        fields: [(String, String)] = [],
        content: String = "",
        trailers: [(String, String)] = []
    ) throws {
        let hasMore = !content.isEmpty || !trailers.isEmpty
        try sendHead(id, [(":status", "\(status)")] + fields, ends: !hasMore)
        if !content.isEmpty {
            try sendContent(Array(content.utf8), on: id, ends: trailers.isEmpty)
        }
        if !trailers.isEmpty { try sendHead(id, trailers, ends: true) }
    }

    package func reset(_ id: UInt32, _ code: UInt32) throws {
        try send(.reset, on: id, HTTP2Client.bytes(code))
    }

    package func goAway(_ last: UInt32, _ code: UInt32 = 0) throws {
        try send(.goAway, HTTP2Client.bytes(last) + HTTP2Client.bytes(code))
    }

    // MARK: Receiving

    /// What has come on a stream.
    package func soFar(_ id: UInt32) -> Request { requests[id] ?? Request() }

    /// Reads until a request is whole that the script has not had; `nil` when the gateway has ended
    /// the connection before it.
    package func nextRequest() throws -> (id: UInt32, request: Request)? {
        try next { $0.isComplete }
    }

    /// Reads until a head is here that the script has not had.
    package func nextHead() throws -> (id: UInt32, request: Request)? {
        try next { !$0.fields.isEmpty }
    }

    private func next(_ isReady: (Request) -> Bool) throws -> (id: UInt32, request: Request)? {
        while true {
            let ready = requests.filter { !served.contains($0.key) && isReady($0.value) }
            if let id = ready.keys.min() {
                served.insert(id)
                return (id, soFar(id))
            }
            do {
                try readFrame()
            } catch WireFault.ended {
                return nil
            } catch WireFault.reset {
                return nil
            }
        }
    }

    /// Reads until this holds of a stream.
    package func read(_ id: UInt32, until isTrue: (Request) -> Bool) throws -> Request {
        while !isTrue(soFar(id)) { try readFrame() }
        return soFar(id)
    }

    /// Takes a frame and notes what it says.
    package func readFrame() throws {
        let head = try connection.wire.take(9)
        let payload = try connection.wire.take(Int(HTTP2Client.number(head[0...2])))
        let id = HTTP2Client.number(head[5...8]) & 0x7FFF_FFFF
        let flags = head[4]
        let isLast = flags & HTTP2Client.endsStream != 0
        switch FrameType(rawValue: head[3]) {
        case .headers:
            let fields = try inflater.read(payload)
            if requests[id] == nil {
                requests[id] = Request(fields: fields)
            } else {
                requests[id]?.trailers = fields
            }
            if isLast { ended(id) }
        case .data:
            requests[id]?.content += payload
            if opensWindows, !payload.isEmpty {
                try openWindow(0, by: UInt32(payload.count))
                if !isLast { try openWindow(id, by: UInt32(payload.count)) }
            }
            if isLast { ended(id) }
        case .reset:
            requests[id]?.reset = HTTP2Client.number(payload)
        case .settings where flags & 1 == 0:
            for start in stride(from: 0, to: payload.count - 5, by: 6)
            where HTTP2Client.number(payload[start..<start + 2]) == 4 {
                initialWindow = Int(HTTP2Client.number(payload[start + 2..<start + 6]))
            }
            try send(.settings, flags: 1)
        case .ping where flags & 1 == 0:
            pings += 1
            if answersPings { try send(.ping, flags: 1, payload) }
        case .ping: pongs += 1
        case .windowUpdate:
            let step = Int(HTTP2Client.number(payload))
            if id == 0 {
                connectionWindow += step
            } else {
                windows[id] = (windows[id] ?? initialWindow) + step
            }
        default: break
        }
    }

    package func openWindow(_ id: UInt32, by count: UInt32) throws {
        try send(.windowUpdate, on: id, HTTP2Client.bytes(count))
    }

    private func ended(_ id: UInt32) {
        requests[id]?.isComplete = true
        guard let request = requests[id] else { return }
        let line = "\(request.value(":method") ?? "") \(request.path) HTTP/2"
        let head = WireHead(startLine: line, fields: request.fields)
        connection.note(
            WireRequest(
                head: head,
                method: request.value(":method") ?? "",
                target: request.path,
                body: request.content,
                trailers: request.trailers
            )
        )
    }
}

/// Reads blocks of fields (RFC 7541).
final class FieldInflater {
    private var pointer: OpaquePointer?

    init() { nghttp2_hd_inflate_new(&pointer) }

    deinit { nghttp2_hd_inflate_del(pointer) }

    func read(_ block: [UInt8]) throws -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        var start = 0
        while true {
            var field = nghttp2_nv()
            var flags: Int32 = 0
            let taken = block.withUnsafeBufferPointer { block in
                nghttp2_hd_inflate_hd2(
                    pointer,
                    &field,
                    &flags,
                    block.baseAddress.map { $0 + start },
                    block.count - start,
                    1
                )
            }
            guard taken >= 0 else { throw WireFault.malformed("HPACK \(taken)") }
            start += taken
            if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
                let name = UnsafeBufferPointer(start: field.name, count: field.namelen)
                let value = UnsafeBufferPointer(start: field.value, count: field.valuelen)
                fields.append(
                    (String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self))
                )
            }
            if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 { break }
        }
        nghttp2_hd_inflate_end_headers(pointer)
        return fields
    }
}
