import Cryptography
package import Verification

/// `verdict.jwt`: the signature of the verdicts that origins get.
package struct VerdictSettings: Sendable, Declared {
    /// `key` or `secret`; `nil` until it was read.
    package private(set) var key: VerdictSigner.Key?
    package private(set) var claims = VerdictSigner.Claims(audience: "")
    /// Whether the public listeners serve the public key, below the endpoints' path.
    package private(set) var publishes = false
    private var keyFile: String?
    private var secretFile: String?

    package static let keys = Keys<Self> {
        Key("key", orNone: \.keyFile, .file("a PEM file's path"))
            .means("A private key on P-256 that signs verdicts. Origins get the public one.")
        Key("secret", orNone: \.secretFile, .file("a file's path"))
            .means("In its place: a secret of 32 bytes or more that origins have, too.")
        Key("audience", \.claims.audience, name)
            .means("The name that the origin looks for in aud.")
            .mandatory("audience: a name that the origin looks for")
        Key("issuer", \.claims.issuer, name).means("The iss of verdicts.")
        Key("ttl", \.claims.ttl, .seconds(.seconds(1) ... .seconds(3_600)))
            .means("How long a verdict is good.")
        Key("publish", \.publishes, .onOff).means("Whether the public key is served at jwks.")
    }.checked { reader, verdict in
        if (verdict.keyFile == nil) == (verdict.secretFile == nil) {
            reader.log.error(
                reader,
                found: verdict.keyFile == nil
                    ? "neither a key nor a secret" : "a key and a secret",
                use: "key: a private key whose public half origins get, or secret: a file that "
                    + "they have too"
            )
        } else if verdict.publishes, verdict.secretFile != nil {
            reader.error(
                "publish",
                found: "on beside a secret, of which nothing can be shown",
                use: "off, or a key in place of the secret"
            )
        }
    }

    /// The section `verdict`.
    static let section = Keys<GatewaySettings> {
        Key("jwt", orNone: \.verdict, .mapping { _ in VerdictSettings() })
            .means("A JSON Web Token with the verdict for the origin.")
            .mandatory("jwt: { key: verdict.pem, audience: orders }")
    }

    /// The name of an issuer or of an audience.
    static let name = ValueForm<String>.name("1…128 visible characters") {
        TextForm.visible($0, most: 128)
    }

    private static let fileBytesMax = 16 << 10

    /// The settings, with the key read; `nil` where it can't be, which is reported.
    func readingKey(_ files: NamedFiles) -> VerdictSettings? {
        var verdict = self
        if let keyFile {
            let file = files.log.located("verdict.jwt.key", keyFile)
            let use = "a readable private key in PEM"
            let bytes = files.secret(file, limit: Self.fileBytesMax, use: use, .privateKey)
            guard let bytes else { return nil }
            let key = ECPrivateKey(pem: String(decoding: bytes, as: UTF8.self))
            verdict.key = key.flatMap { P256PrivateKey($0) }.map { .p256($0) }
            if verdict.key == nil {
                let path = files.path(of: file)
                files.log.error(
                    file,
                    found: "no private key on P-256 in \(path), or one with a passphrase",
                    use: "one of: (umask 077; openssl genpkey -algorithm EC -pkeyopt "
                        + "ec_paramgen_curve:P-256 -out \(path))"
                )
            }
        } else if let secretFile {
            let file = files.log.located("verdict.jwt.secret", secretFile)
            let use = "a readable file with a secret"
            let bytes = files.secret(file, limit: Self.fileBytesMax, use: use, .line)
            guard var bytes else { return nil }
            if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
            let least = VerdictSigner.secretBytesMin
            if bytes.count >= least {
                verdict.key = .secret(bytes)
            } else {
                let path = files.path(of: file)
                files.log.error(
                    file,
                    found: "a secret of fewer than \(least) bytes in \(path)",
                    use: "one of: (umask 077; openssl rand -hex 32 > \(path))"
                )
            }
        }
        return verdict.key == nil ? nil : verdict
    }
}
