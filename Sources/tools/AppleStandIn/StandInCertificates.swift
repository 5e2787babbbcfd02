import Cryptography
import Encodings
import Foundation

/// The stand-in's authority and its server's certificate, as files.
struct StandInCertificates {
    let root: String
    let chain: String
    let key: String

    init(folder: String) throws {
        let now = UnixTime(seconds: Int64(Date().timeIntervalSince1970))
        func template(_ name: String, _ serial: UInt64, isAuthority: Bool) -> CertificateBuilder {
            CertificateBuilder(
                commonName: name,
                organization: "Portcullis, for tests alone",
                serial: serial,
                notBefore: now.advanced(bySeconds: -86_400),
                notAfter: now.advanced(bySeconds: 365 * 86_400),
                isAuthority: isAuthority
            )
        }
        let rootKey = ECPrivateKey(generating: .p256)
        let root = template("Stand-in for Apple's authorities", 1, isAuthority: true)
            .selfSigned(by: rootKey)
        let serverKey = ECPrivateKey(generating: .p256)
        var server = template("localhost", 2, isAuthority: false)
        // RFC 5280 §4.2.1.6: dNSName is [2], iPAddress [7].
        let name = Array("localhost".utf8)
        let names = [0x82, UInt8(name.count)] + name + [0x87, 4, 127, 0, 0, 1]
        server.extensions = [
            CertificateBuilder.Extension(
                oid: OID("2.5.29.17"),
                isCritical: false,
                value: DEREncoder.sequence([names])
            )
        ]
        let certificate = server.signed(for: serverKey, by: rootKey, issuer: root)
        self.root = folder + "/apple-root.pem"
        chain = folder + "/apple-server.pem"
        key = folder + "/apple-server-key.pem"
        for (path, text) in [
            (self.root, root.pem), (chain, certificate.pem), (key, serverKey.pem),
        ] {
            let made = FileManager.default.createFile(
                atPath: path,
                contents: Data(text.utf8),
                attributes: [.posixPermissions: 0o600]
            )
            guard made else { throw StandInServer.Failure(description: "can't write \(path)") }
        }
    }
}
