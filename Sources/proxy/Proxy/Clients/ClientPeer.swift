import EventLoops
import HTTPWire
import Verification

/// Who is at the other end of a connection, as the current settings see it. One for a connection,
/// whatever protocol it goes on with.
final class ClientPeer {
    /// Of a Unix socket the loopback address.
    let address: IPAddress
    /// The other end is a Unix socket, which has no address.
    let isUnix: Bool
    let isSecure: Bool
    /// How the peer asks for decisions; `nil` where its requests go to origins.
    let decides: DecisionQuestion?
    /// What the address has used of its limits; `nil` where it has none of its own.
    @exclusivity(unchecked) var entry: AddressEntry?
    /// Tells origins who the client is.
    @exclusivity(unchecked) var provenance: ProvenanceWriter
    /// The number of the settings by which it was decided whether the peer is trusted.
    @exclusivity(unchecked) var settingsNumber: UInt32

    init(
        address: IPAddress,
        isUnix: Bool,
        isSecure: Bool,
        decides: DecisionQuestion? = nil,
        entry: AddressEntry?,
        provenance: ProvenanceWriter,
        settingsNumber: UInt32
    ) {
        self.address = address
        self.isUnix = isUnix
        self.isSecure = isSecure
        self.decides = decides
        self.entry = entry
        self.provenance = provenance
        self.settingsNumber = settingsNumber
    }

    /// Whether what it says of its clients is believed.
    var isTrusted: Bool { provenance.peerIsTrusted }
    var certificate: ClientCertificate? { provenance.certificate }

    /// Tells an origin who the client is: see ``HTTPWire/ProvenanceWriter``.
    func writeProvenance(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ address: ClientAddress,
        keepsHost: Bool,
        into out: inout [UInt8]
    ) {
        provenance.write(head, bytes, address, keepsHost: keepsHost, into: &out)
    }

    /// Takes the certificate that the client sent in its TLS handshake.
    func note(_ shown: TLSPeerCertificate) {
        provenance.certificate = ClientCertificate(
            fingerprint: shown.fingerprint,
            subject: shown.subject
        )
    }
}
