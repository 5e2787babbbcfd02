// TLS on a connection, beside reading and writing.
extension Connection {
    /// The progress of a handshake.
    package enum Handshake: Equatable {
        /// It has succeeded: bytes of the application may be sent.
        case ended
        /// It waits for the peer; ``inputReady()`` follows.
        case waiting
        /// It has failed. The peer gets an alert if that is possible.
        case failed(TLSFailure)
    }

    /// The most reads of ``isQuiet()``. A peer that sends more than this is not quiet.
    private static let quietReadsMax = 4

    package final var isSecure: Bool { tls != nil }

    /// Whether clients of the listener are asked for a certificate.
    package final var asksClients: Bool { tls?.asksClients ?? false }

    /// The client's certificate; `nil` for none.
    package final var clientCertificate: TLSPeerCertificate? { tls?.clientCertificate }

    /// Continues the handshake as far as the peer's bytes allow. A plain connection has none.
    package final func shakeHands() -> Handshake {
        guard let tls else { return .ended }
        while true {
            tls.goOn()
            let sent = sendCiphertext(of: tls)
            if let failure = tls.failure { return .failed(failure) }
            if case .failed = sent { return .failed(.ended) }
            if tls.isEstablished {
                mayHoldPlaintext = tls.mayHoldPlaintext
                return .ended
            }
            switch isReadable ? receive(loop.ciphertextInput) : .wouldBlock {
            case .bytes(let bytes): tls.feed(bytes.span)
            case .wouldBlock: return .waiting
            case .ended, .failed: return .failed(.ended)
            }
        }
    }

    /// Whether, as far as is known, the peer has sent nothing that a reader would get, and no end.
    /// Under TLS, it reads and discards messages of TLS itself, such as tickets.
    package final func isQuiet() -> Bool {
        guard let tls, !isClosed else { return !isReadable }
        var byte: UInt8 = 0
        for _ in 0..<Self.quietReadsMax {
            guard isReadable else { return true }
            // Not into the event loop's input, where a request may still be.
            switch withUnsafeMutableBytes(of: &byte, { tls.read(into: $0) }) {
            case .bytes, .closed, .failed: return false
            case .needsInput: mayHoldPlaintext = false
            }
            if tls.hasCiphertext, case .failed = sendCiphertext(of: tls) { return false }
            switch receive(loop.ciphertextInput) {
            case .bytes(let bytes):
                tls.feed(bytes.span)
                mayHoldPlaintext = true
            case .wouldBlock: return !isEnding
            case .ended, .failed: return false
            }
        }
        return false
    }

    /// Closes a connection on which all was sent. Under TLS, it first sends the peer an end
    /// (close_notify, RFC 8446 §6.1). Never call it after an incomplete message: there the missing
    /// close_notify tells the peer.
    package final func closeInOrder() {
        if let tls, !isClosed, !resetsOnClose, unsentBytes == 0, tls.isEstablished {
            tls.shutDown()
            _ = sendCiphertext(of: tls)
        }
        close()
    }
}
