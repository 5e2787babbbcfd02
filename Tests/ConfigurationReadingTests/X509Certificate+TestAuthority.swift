import Cryptography

extension X509Certificate {
    /// A new authority.
    static func testAuthority() -> X509Certificate {
        let builder = CertificateBuilder(
            subject: .init(commonName: "test authority"),
            serial: 1,
            validity: UnixTime(seconds: 1_790_000_000)...UnixTime(seconds: 1_890_000_000),
            isAuthority: true
        )
        return builder.selfSigned(by: P256PrivateKey().key)
    }
}
