import Cryptography
package import Verification

/// The file's section about signed verdicts: `verdict`.
struct VerdictDraft {
    private enum Source {
        /// A private key on P-256.
        case key(Located<String>)
        /// A secret that origins share.
        case secret(Located<String>)
    }

    private struct Token: Declared {
        var key: Located<String>?
        var secret: Located<String>?
        var audience: Located<String>?
        var issuer: Located<String>?
        var ttl: Located<Duration>?
        var publish: Located<OnOff>?

        static let keys = Keys<Self> {
            Key("key", into: \.key) { $0.filePath($1, use: "a PEM file's path") }
                .means("A private key on P-256 that signs verdicts. Origins get the public one.")
            Key("secret", into: \.secret) { $0.filePath($1, use: "a file's path") }
                .means("In its place: a secret of 32 bytes or more that origins have, too.")
            Key("audience", into: \.audience) { $0.value($1, use: nameUse, name) }
                .means("The name that the origin looks for in aud.")
                .mandatory("audience: a name that the origin looks for")
            Key("issuer", into: \.issuer) { $0.value($1, use: nameUse, name) }
                .means("The iss of verdicts. Without it, portcullis.")
            Key("ttl", into: \.ttl) { $0.duration($1, in: .seconds(1) ... .seconds(3_600)) }
                .means("How long a verdict is good. Without it, 60s.")
            Key("publish", into: \.publish) { $0.word($1) }
                .means("Whether the public key is served at jwks. Without it, off.")
        }
    }

    private static let keys = Keys<Self> {
        Key("jwt").means("A JSON Web Token with the verdict for the origin.")
            .mandatory("jwt: { key: verdict.pem, audience: orders }")
    }

    private var source: Source?
    private var claims: VerdictSigner.Claims?
    private var publishes = false

    /// - root: the whole configuration.
    init(_ root: MappingReader) {
        let log = root.log
        guard let section = root.inner("verdict", Self.keys),
            let jwt = Stated(section.node("jwt"), section.path("jwt"), over: Token(), log)
        else { return }
        let token = jwt.value
        switch (token.key, token.secret) {
        case (let key?, nil): source = .key(key)
        case (nil, let secret?): source = .secret(secret)
        case (nil, nil), (.some, .some):
            log.error(
                jwt,
                found: token.key == nil ? "neither a key nor a secret" : "a key and a secret",
                use: "key: a private key whose public half origins get, or secret: a file that "
                    + "they have too"
            )
        }
        publishes = token.publish?.value == .on
        if publishes, let publish = token.publish, case .secret = source {
            log.error(
                publish,
                found: "on beside a secret, of which nothing can be shown",
                use: "off, or a key in place of the secret"
            )
        }
        guard let audience = token.audience else { return }
        var claims = VerdictSigner.Claims(audience: audience.value)
        if let issuer = token.issuer { claims.issuer = issuer.value }
        if let ttl = token.ttl { claims.ttl = ttl.value.components.seconds }
        self.claims = claims
    }

    static let nameUse = "1…128 visible characters"

    static func name(_ text: String) -> String? {
        (1...128).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
            ? text : nil
    }

    /// Reports audiences of origins where verdicts are not signed.
    func validate(_ origins: [OriginDraft], _ log: ProblemLog) {
        guard source == nil else { return }
        for origin in origins where origin.audience != nil {
            log.error(
                log.located("\(origin.name.keyPath).audience", origin),
                found: "it without signed verdicts, which are what has an audience",
                use: "verdict: { jwt: { key: verdict.pem, audience: orders } } beside it, or no "
                    + "audience"
            )
        }
    }

    /// The settings, with the key read; `nil` where verdicts are not signed.
    func validated(_ files: NamedFiles) -> VerdictSettings? {
        guard let source, let claims else { return nil }
        let key: VerdictSigner.Key? =
            switch source {
            case .key(let file):
                Self.read(file, files, use: "a readable private key in PEM") { bytes in
                    let pem = String(decoding: bytes, as: UTF8.self)
                    return ECPrivateKey(pem: pem).flatMap { P256PrivateKey($0) }.map { .p256($0) }
                } found: { path in
                    "no private key on P-256 in \(path), or one with a passphrase"
                } next: { path in
                    "one of: (umask 077; openssl genpkey -algorithm EC -pkeyopt "
                        + "ec_paramgen_curve:P-256 -out \(path))"
                }
            case .secret(let file):
                Self.read(file, files, use: "a readable file with a secret") { bytes in
                    var bytes = bytes
                    if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
                    return bytes.count >= VerdictSigner.secretBytesMin ? .secret(bytes) : nil
                } found: { path in
                    "a secret of fewer than \(VerdictSigner.secretBytesMin) bytes in \(path)"
                } next: { path in
                    "one of: (umask 077; openssl rand -hex 32 > \(path))"
                }
            }
        return key.map { VerdictSettings(key: $0, claims: claims, publishes: publishes) }
    }

    private static let fileBytesMax = 16 << 10

    private static func read(
        _ file: Located<String>,
        _ files: NamedFiles,
        use: String,
        _ key: ([UInt8]) -> VerdictSigner.Key?,
        found: (String) -> String,
        next: (String) -> String
    ) -> VerdictSigner.Key? {
        guard let bytes = files.secret(file, limit: fileBytesMax, use: use) else { return nil }
        if let key = key(bytes) { return key }
        let path = files.path(of: file)
        files.log.error(file, found: found(path), use: next(path))
        return nil
    }
}

/// `verdict.jwt`: the signature of the verdicts that origins get.
package struct VerdictSettings: Sendable {
    /// `key` or `secret`.
    package let key: VerdictSigner.Key
    package let claims: VerdictSigner.Claims
    /// `publish`: whether the public listeners serve the public key, below the endpoints' path.
    /// Default off.
    package let publishes: Bool
}
