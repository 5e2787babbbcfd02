import HTTPWire

extension FuzzTarget {
    /// A server's frames, to a client with three requests. The session takes them or ends the
    /// connection. A response that it builds is one head, a stream ends once, and what is sent is
    /// bounded. The input is written as for ``http2(_:)``.
    static func http2Origin(_ bytes: [UInt8]) {
        let isRaw = bytes.first == 0xFF
        let frames = isRaw ? Array(bytes.dropFirst()) : HTTP2Replay.frames(bytes)
        guard let replay = HTTP2OriginReplay() else { return }
        let stream = HTTP2OriginReplay.settings + frames
        let piece = 1 + stream.count % 97
        for start in stride(from: 0, to: stream.count, by: piece) {
            guard replay.receive(Array(stream[start..<min(start + piece, stream.count)])) else {
                break
            }
        }
        replay.abandon()
    }
}

/// A client that asks for three things, and takes whatever it is answered.
final class HTTP2OriginReplay {
    /// SETTINGS without a setting (RFC 9113 §6.5).
    static let settings: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0]
    /// Bytes that the session may send for one call, windows or not.
    private static let outputMax = 8 << 20

    private let session: HTTP2ClientSession
    private let limits = HTTP2Limits()
    private var asked: [HTTP2ClientChannel] = []
    private var methods: [Int32: Method] = [:]
    /// Streams with a final head, and what each with a stated length may still bring.
    private var begun: Set<Int32> = []
    private var rest: [Int32: UInt64] = [:]
    private var now: UInt64 = 1

    init?() {
        do { session = try HTTP2ClientSession(limits, isSecure: false) } catch { return nil }
    }

    /// - Returns: whether the connection goes on.
    func receive(_ piece: [UInt8]) -> Bool {
        now += 1
        do throws(HTTP2ClientSession.Fault) {
            try session.receive(piece.span, now: now)
        } catch {
            session.terminate(.enhanceYourCalm)
            _ = send()
            return false
        }
        while let channel = session.nextNews() { take(from: channel) }
        if asked.isEmpty, session.standing == .open {
            ask("GET", .get)
            ask("HEAD", .head)
            ask("POST", .post)
        }
        return send() && !session.isOver
    }

    /// The connection ends: each stream that was open has ended then.
    func abandon() {
        session.abandon()
        while let channel = session.nextNews() { take(from: channel) }
        FuzzTarget.demand(session.openCount == 0, "no stream outlives its connection")
        for channel in asked { FuzzTarget.demand(channel.end != nil, "each stream ends") }
    }

    private func ask(_ name: String, _ method: Method) {
        let head = Array("\(name) /a HTTP/1.1\r\nHost: a.test\r\n\r\n".utf8)
        let begun = session.begin(
            head.span,
            isHead: method == .head,
            hasContent: method == .post
        )
        guard let channel = begun else { return }
        asked.append(channel)
        methods[channel.id] = method
        guard method == .post else { return }
        let content = [UInt8](repeating: 0x61, count: 40_000)
        session.append(content.span, to: channel)
        session.complete(channel)
    }

    private func take(from channel: HTTP2ClientChannel) {
        while let built = channel.takeHead() { read(built, of: channel) }
        guard channel.end == nil || channel.end == .inOrder else { return }
        let content = session.takeContent(of: channel, atMost: 1 << 14)
        if !content.isEmpty {
            FuzzTarget.demand(begun.contains(channel.id), "content comes behind a head")
        }
        if channel.inboxCount > 0 { session.remind(channel) }
        guard let left = rest[channel.id] else { return }
        FuzzTarget.demand(UInt64(content.count) <= left, "no more content than was said")
        rest[channel.id] = left - UInt64(content.count)
        if channel.end == .inOrder, channel.inboxCount == 0 {
            FuzzTarget.demand(rest[channel.id] == 0, "no less content than was said")
        }
    }

    private func read(_ built: ResponseHeadBuilder.Built, of channel: HTTP2ClientChannel) {
        FuzzTarget.demand(!begun.contains(channel.id), "one final head, and none behind it")
        guard built.fault == nil else {
            FuzzTarget.demand(built.bytes.isEmpty, "a malformed head has no bytes")
            session.reset(channel, .cancel)
            return
        }
        var scanner = HeadScanner(.response)
        var head = ResponseHead()
        let method = methods[channel.id] ?? .get
        do throws(Malformed) {
            let bytes = built.bytes.span
            guard case .complete(let range) = try scanner.scan(bytes, limits: limits.head)
            else { return FuzzTarget.demand(false, "a head is complete") }
            FuzzTarget.demand(range == 0..<bytes.count, "a head is one head")
            try head.read(bytes, to: method, upgradeSent: false, limits: limits.head)
        } catch {
            session.reset(channel, .cancel)
            return
        }
        FuzzTarget.demand(head.isInterim == built.isInterim, "both know an interim head")
        guard !head.isInterim else { return }
        begun.insert(channel.id)
        if case .length(let length) = head.framing { rest[channel.id] = length }
    }

    /// - Returns: whether the connection goes on.
    private func send() -> Bool {
        var sent = 0
        while true {
            var bytes: [UInt8] = []
            do throws(HTTP2ClientSession.Fault) {
                try session.send(into: &bytes, atMost: 1 << 16, now: now)
            } catch {
                return false
            }
            guard !bytes.isEmpty else { return true }
            sent += bytes.count
            FuzzTarget.demand(sent <= Self.outputMax, "what is sent is bounded")
        }
    }
}
