import EventLoops
import HTTPWire

/// A proxy's connection until its PROXY header has been read. What follows the header is the
/// client's, TLS included, so the bytes stay in the kernel until the header is whole; then the
/// socket goes on as a client's connection.
final class ProxiedConnection: Connection {
    /// How it ended.
    enum Outcome {
        /// The header is read away; this is the socket.
        case named(Int32, ProxyHeader.Source)
        /// It was closed.
        case failed(Fault)
    }

    /// Why there is no client.
    enum Fault: Equatable, Sendable {
        case malformed(MalformedProxyHeader)
        /// The header was not whole in time.
        case late
        /// The peer has ended its direction before that.
        case gone
        /// The peer has ended its direction without a byte, as probes of balancers do; or the
        /// gateway has closed the connection.
        case unused
    }

    private var ended: ((ProxiedConnection, Outcome) -> Void)?

    /// `ended` is called once.
    init(
        _ descriptor: Int32,
        _ peer: SocketAddress,
        on loop: EventLoop,
        ended: @escaping (ProxiedConnection, Outcome) -> Void
    ) {
        self.ended = ended
        super.init(descriptor: descriptor, peer: peer, isConnecting: false, on: loop)
    }

    /// There may be something to read.
    override public func inputReady() {
        switch peek(ProxyHeader.byteCountMax) {
        case .bytes(let bytes): read(bytes.span)
        case .wouldBlock: break
        case .ended, .failed: end(.unused)
        }
    }

    private func read(_ bytes: Span<UInt8>) {
        do throws(MalformedProxyHeader) {
            switch try ProxyHeader.read(bytes) {
            // The kernel announces no further byte after the peer's end.
            case .needMore: if isEnding { end(.gone) }
            case .complete(let byteCount, let source):
                skip(byteCount)
                let ended = take()
                ended?(self, .named(detach(), source))
            }
        } catch {
            end(.malformed(error))
        }
    }

    /// The peer has closed both directions, and this was not read yet.
    override public func brokeWhileUnread() { end(.unused) }

    /// The header did not come in time.
    override public func deadlinePassed() { end(.late) }

    func end(_ fault: Fault) {
        guard let ended = take() else { return }
        close()
        ended(self, .failed(fault))
    }

    private func take() -> ((ProxiedConnection, Outcome) -> Void)? {
        defer { ended = nil }
        return ended
    }
}
