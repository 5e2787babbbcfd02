package import TLSSession

// What a connection does when its client turns out to speak another protocol.
extension Connection {
    /// Whether TLS has agreed on HTTP/2 (RFC 9113 §3.2).
    package final var hasAgreedHTTP2: Bool { tls?.applicationProtocol == TLSContext.http2 }

    /// Lets another connection go on with the socket. This one is closed from then on, without a
    /// word to its owner.
    ///
    /// - make: makes the successor, of the same descriptor and TLS session.
    package final func handOver<Successor: Connection>(
        to make: (Int32, TLSSession?) -> Successor
    ) -> Successor {
        let successor = make(descriptor, tls)
        successor.socketIsReadable = true
        successor.mayHoldPlaintext = tls != nil
        successor.isWritable = isWritable
        successor.endIsAnnounced = endIsAnnounced
        swap(&successor.unsent, &unsent)
        swap(&successor.unsentStart, &unsentStart)
        give(to: successor)
        return successor
    }
}
