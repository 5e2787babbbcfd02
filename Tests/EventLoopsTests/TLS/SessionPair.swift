import EventLoops

/// A client's and a server's session and the wire between them.
struct SessionPair {
    let client: TLSSession
    let server: TLSSession
    /// Bytes under way to the server and to the client.
    var toServer: [UInt8] = []
    var toClient: [UInt8] = []
    /// What the two read.
    var serverRead: [UInt8] = []
    var clientRead: [UInt8] = []
    /// The last outcome of each that was not bytes.
    var serverOutcome = TLSSession.ReadOutcome.needsInput
    var clientOutcome = TLSSession.ReadOutcome.needsInput

    init(
        certificate: String = "server",
        host: String = "gateway.test",
        trust: TLSContext.Trust? = nil,
        minimumVersion: TLSContext.MinimumVersion = .tls12
    ) throws {
        let certificates = try TestCertificates.shared.get()
        server = try TLSSession(accepting: Self.serverContext(certificate, minimumVersion))
        let trust = trust ?? .file(certificates.authority)
        client = try TLSSession(connecting: TLSContext(clientTrusting: trust), to: host)
    }

    init(
        accepting context: TLSContext,
        host: String = "gateway.test",
        resuming resumption: TLSResumption? = nil,
        showing shown: ServerCertificate? = nil,
        offering terms: TLSTerms = TLSTerms()
    ) throws {
        let authority = try TestCertificates.shared.get().authority
        server = try TLSSession(accepting: context)
        let trust = try TLSContext(clientTrusting: .file(authority), showing: shown, terms: terms)
        client = try TLSSession(connecting: trust, to: host, resuming: resumption)
    }

    static func serverContext(
        _ certificate: String = "server",
        _ minimumVersion: TLSContext.MinimumVersion = .tls12
    ) throws -> TLSContext {
        let certificates = try TestCertificates.shared.get()
        return try TLSContext(
            serverCertificateChain: certificates.chain(certificate),
            key: certificates.key(certificate),
            terms: TLSTerms(minimumVersion: minimumVersion)
        )
    }

    /// Carries bytes to and fro until neither side has more, in pieces of at most `pieceMax`.
    mutating func exchange(pieceMax: Int = 65536) {
        // The client speaks first.
        readClient()
        while !toServer.isEmpty || !toClient.isEmpty {
            if !toServer.isEmpty {
                let piece = toServer.prefix(pieceMax)
                toServer.removeFirst(piece.count)
                server.feed(piece)
                readServer()
            }
            if !toClient.isEmpty {
                let piece = toClient.prefix(pieceMax)
                toClient.removeFirst(piece.count)
                client.feed(piece)
                readClient()
            }
        }
    }

    mutating func readClient() {
        clientOutcome = Self.readAll(client, into: &clientRead)
        client.takeCiphertext(into: &toServer)
    }

    mutating func readServer() {
        serverOutcome = Self.readAll(server, into: &serverRead)
        server.takeCiphertext(into: &toClient)
    }

    /// Reads until there is nothing; returns why.
    static func readAll(
        _ session: TLSSession,
        into plain: inout [UInt8],
        bufferSize: Int = 65536
    ) -> TLSSession.ReadOutcome {
        var buffer = [UInt8](repeating: 0, count: bufferSize)
        while true {
            let outcome = buffer.withUnsafeMutableBytes { session.read(into: $0) }
            guard case .bytes(let count) = outcome else { return outcome }
            plain += buffer[..<count]
        }
    }
}

extension TLSSession {
    func feed(_ bytes: some Collection<UInt8>) {
        feed(Array(bytes).span)
    }

    func write(_ bytes: some Collection<UInt8>) -> Bool {
        write(Array(bytes).span)
    }
}

extension TLSSession.ReadOutcome {
    /// Why it failed, if it did.
    var reason: TLSFailure.Reason? {
        guard case .failed(let failure) = self else { return nil }
        return failure.reason
    }
}
