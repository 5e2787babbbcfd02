import Cryptography

extension X509Certificate {
    /// A new authority.
    static func testAuthority() -> X509Certificate {
        let builder = CertificateBuilder(
            commonName: "test authority",
            serial: 1,
            notBefore: UnixTime(seconds: 1_790_000_000),
            notAfter: UnixTime(seconds: 1_890_000_000),
            isAuthority: true
        )
        return builder.selfSigned(by: P256PrivateKey().key)
    }
}
