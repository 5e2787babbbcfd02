import TLSSession

/// What certificates are loaded with, and what outlives them.
struct TLSSurroundings: Sendable {
    /// The keys of clients' tickets.
    var tickets = TicketKeys()
    /// The responses that are stapled now, by file.
    var staples: [String: StapledResponse] = [:]
    /// Seconds of Unix time.
    var wallSeconds: @Sendable () -> Int64 = TLSContext.systemSeconds
}

extension TLSSurroundings {
    /// Keeps what these contexts staple.
    mutating func keepStaples(of contexts: [TLSContext?]) {
        for certificate in contexts.compactMap(\.self).flatMap(\.certificates) {
            guard let file = certificate.stapleFile, let staple = certificate.staple else {
                continue
            }
            staples[file] = staple
        }
    }
}
