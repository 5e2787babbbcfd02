package import TLSSession

/// How a server is spoken to under TLS. Shared by the lanes.
package struct OriginTLS: Sendable {
    /// The authorities that are trusted, and what is shown to the server.
    package let context: TLSContext
    /// The name or address that the server's certificate must have; a name is sent as SNI.
    package let name: String
    let sessions = TLSResumption()

    package init(_ context: TLSContext, name: String) {
        self.context = context
        self.name = name
    }

    /// The client's end of a new connection.
    func session() throws(TLSFailure) -> TLSSession {
        try TLSSession(connecting: context, to: name, resuming: sessions)
    }
}
