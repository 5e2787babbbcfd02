import EventLoops
import HTTPWire

// WebSocket by extended CONNECT (RFC 8441), to an origin that speaks HTTP/1.1.
extension HTTP2Stream {
    func upgrade(
        _ head: borrowing ResponseHead,
        _ bytes: Span<UInt8>,
        behind: Span<UInt8>,
        to owner: any ByteStreamOwner
    ) -> (stream: any ByteStream, early: [UInt8])? {
        guard channel.asksTunnel else {
            // A stream has no 101 (RFC 9113 §8.6), and its client has not asked for one.
            close()
            return nil
        }
        var out = connection.loop.takeOutput()
        defer { connection.loop.giveBack(&out) }
        HeadWriter.beginResponse(head, bytes, HeadWriter.ResponseOptions(), into: &out)
        HeadWriter.endHead(into: &out)
        isUnsendable = !session.acceptTunnel(channel, out.span)
        if !behind.isEmpty { append(behind) }
        if case .closed = flush() { return nil }
        leave()
        tunnelling = .active(owner)
        return (self, session.takeContent(of: channel))
    }

    func tell(_ tunnel: any ByteStreamOwner) {
        if channel.takeDrained() {
            stopDeadline()
            tunnel.drained(self)
        }
        if channel.inboxCount > 0 || channel.isInputEnded { tunnel.readable(self) }
    }

    /// The stream is closed. What came with the client's end of a tunnel is passed on.
    func passLastContent() {
        guard channel.hasEndedTunnel else { return }
        if case .active(let tunnel) = tunnelling { tunnel.endedInOrder(self) }
        // What is still here is dropped, and must not close the connection's window.
        _ = session.takeContent(of: channel)
    }

    /// The tunnel has ended. If its output is complete, it is sent; otherwise the stream is reset.
    func endTunnel() {
        tunnelling = .over
        stopDeadline()
        guard !connection.isClosed, !channel.isClosed else { return }
        if channel.isInputEnded, channel.isOutputComplete {
            connection.flushed(self)
        } else {
            session.reset(channel, .cancel)
            connection.schedule()
        }
    }
}

extension HTTP2Stream: ByteStream {
    func read() -> Connection.ReadOutcome {
        guard channel.inboxCount > 0 else { return channel.isInputEnded ? .ended : .wouldBlock }
        let bytes = session.takeContent(of: channel, atMost: EventLoop.inputBytes)
        // The windows have opened.
        connection.schedule()
        return .bytes(connection.loop.asRead(bytes.span))
    }

    func write(_ bytes: Span<UInt8>) -> Connection.WriteOutcome {
        guard !channel.isClosed, !connection.isClosed else { return .failed(.truncated) }
        append(bytes)
        return queued() ? .queued : .sent
    }

    func shutDownOutput() {
        guard !connection.isClosed else { return }
        endContent(nil)
        connection.flushed(self)
    }

    func setDeadline(milliseconds: UInt64?) {
        // The client first has to take the bytes that wait for it.
        guard !channel.isStalled else { return }
        guard let milliseconds else { return stopDeadline() }
        allow(milliseconds: milliseconds, from: contentCount)
    }
}
