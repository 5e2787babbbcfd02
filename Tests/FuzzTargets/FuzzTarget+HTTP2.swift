import HTTPWire

extension FuzzTarget {
    /// A client's frames. The session takes them or ends the connection. A head that it builds is
    /// one head, content is never more than was said, and answers are sent in bounded bytes.
    ///
    /// The input says type, flags, stream and length of a frame in a byte each, then its payload: a
    /// mutation of it is one of frames. With a first byte of 0xFF the rest is raw.
    static func http2(_ bytes: [UInt8]) {
        let isRaw = bytes.first == 0xFF
        let frames = isRaw ? Array(bytes.dropFirst()) : HTTP2Replay.frames(bytes)
        let stream = HTTP2Replay.preface + frames
        guard let replay = HTTP2Replay() else { return }
        // Pieces of another size for other inputs: how a client cuts its stream is its own affair.
        let piece = 1 + stream.count % 97
        for start in stride(from: 0, to: stream.count, by: piece) {
            guard replay.receive(Array(stream[start..<min(start + piece, stream.count)])) else {
                return
            }
        }
    }
}

/// A server that answers whatever it is asked.
final class HTTP2Replay {
    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    /// Bytes that the session may send for one call, windows or not.
    private static let outputMax = 8 << 20

    private let session: HTTP2Session
    private let limits = HTTP2Limits()
    private var scratch = RequestHead()
    /// What each stream with a stated length may still bring.
    private var rest: [Int32: UInt64] = [:]
    private var now: UInt64 = 1

    init?() {
        do {
            session = try HTTP2Session(limits, nonce: 1, memory: HeadMemory())
        } catch {
            return nil
        }
    }

    /// Frames as the input describes them.
    static func frames(_ bytes: [UInt8]) -> [UInt8] {
        var frames: [UInt8] = []
        var start = 0
        while bytes.count - start >= 4 {
            let (type, flags, stream) = (bytes[start], bytes[start + 1], bytes[start + 2])
            let payload = bytes[(start + 4)...].prefix(Int(bytes[start + 3]))
            start += 4 + payload.count
            frames += [0, 0, UInt8(payload.count), type, flags, 0, 0, 0, stream] + payload
        }
        return frames
    }

    /// - Returns: whether the connection goes on.
    func receive(_ piece: [UInt8]) -> Bool {
        now += 1
        do throws(HTTP2Session.Fault) {
            try session.receive(piece.span, now: now)
        } catch {
            session.terminate(.enhanceYourCalm)
            _ = send()
            return false
        }
        while let channel = session.nextNews() { serve(channel) }
        session.forgetHeads()
        return send() && !session.isOver
    }

    private func serve(_ channel: HTTP2Channel) {
        if let built = session.takeHead(of: channel) { begin(channel, built) }
        let content = session.takeContent(of: channel)
        guard let left = rest[channel.id] else { return }
        FuzzTarget.demand(UInt64(content.count) <= left, "no more content than was said")
        rest[channel.id] = left - UInt64(content.count)
        if channel.isInputEnded, channel.closeCode == nil {
            FuzzTarget.demand(rest[channel.id] == 0, "no less content than was said")
        }
    }

    private func begin(_ channel: HTTP2Channel, _ built: RequestHeadBuilder.Built) {
        guard built.fault == nil else { return answer(channel, "400") }
        let head = Array(session.heads[built.range])
        var scanner = HeadScanner(.request(isSecure: false))
        do throws(Malformed) {
            guard case .complete(let range) = try scanner.scan(head.span, limits: limits.head)
            else { return FuzzTarget.demand(false, "a head is complete") }
            FuzzTarget.demand(range == 0..<head.count, "a head is one head")
            try scratch.read(head.span, isSecure: false, limits: limits.head)
        } catch {
            return answer(channel, "400")
        }
        if case .length(let length) = scratch.framing { rest[channel.id] = length }
        answer(channel, "200")
    }

    private func answer(_ channel: HTTP2Channel, _ status: String) {
        if channel.asksTunnel {
            let head = Array("HTTP/1.1 101 A\r\nSec-WebSocket-Accept: x\r\n\r\n".utf8)
            _ = session.acceptTunnel(channel, head.span)
        } else {
            let head = Array("HTTP/1.1 \(status) A\r\nX-Note: y\r\n\r\n".utf8)
            session.respond(channel, head.span, hasContent: true)
        }
        let content = [UInt8](repeating: 0x61, count: 40_000)
        session.append(content.span, to: channel)
        if channel.id % 3 != 0 { session.complete(channel, nil) }
    }

    /// - Returns: whether the connection goes on.
    private func send() -> Bool {
        var sent = 0
        while true {
            var bytes: [UInt8] = []
            do throws(HTTP2Session.Fault) {
                try session.send(into: &bytes, atMost: 1 << 16, now: now)
            } catch {
                return false
            }
            guard !bytes.isEmpty else { return session.takeExcess() == nil }
            sent += bytes.count
            FuzzTarget.demand(sent <= Self.outputMax, "what is sent is bounded")
        }
    }
}
