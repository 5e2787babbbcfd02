internal import Crypto
internal import Encodings
internal import Foundation

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// A key that a Secure Enclave would hold, and what has become of it.
struct SimulatedKey: Codable, Sendable {
    /// How far it is. Apple attests a key once, and refuses assertions before.
    enum State: String, Codable, Sendable {
        case generated, attested
    }

    /// The scalar of the private key, 32 bytes, big-endian.
    private let scalar: Data
    /// How far it is.
    var state = State.generated
    /// The number of assertions that were made.
    var counter: UInt32 = 0

    /// A random key.
    init() { scalar = P256.Signing.PrivateKey().rawRepresentation }

    private var key: P256.Signing.PrivateKey {
        get throws { try P256.Signing.PrivateKey(rawRepresentation: scalar) }
    }

    /// SHA-256 of the X9.62 point.
    var identifier: Data {
        get throws { Data(SHA256.hash(data: try key.publicKey.x963Representation)) }
    }

    /// The key id as `generateKey` returns it: base64.
    var keyID: String {
        get throws { try identifier.base64EncodedString() }
    }

    /// The X9.62 point, 65 bytes.
    var publicKey: Data {
        get throws { try key.publicKey.x963Representation }
    }

    // MARK: The objects

    /// The object of `attestKey`: `{fmt, attStmt: {x5c, receipt}, authData}`.
    func attestation(
        for app: SimulatedApp,
        clientDataHash: Data,
        by authority: TestAuthority,
        now: Date
    ) throws -> Data {
        let key = try self.key
        let identifier = try self.identifier
        var data = app.authenticatorData(counter: 0)
        // AAGUID, length of the credential id, credential id, COSE key.
        data += Array("appattest".utf8) + [UInt8](repeating: 0, count: 7)
        data += [0, UInt8(identifier.count)] + identifier
        data += Self.coseKey(of: key.publicKey.x963Representation) + app.extensionMap
        let nonce = Array(SHA256.hash(data: data + clientDataHash))
        let certificates = try authority.certificates(
            identifier.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(),
            publicKeyInfo: Array(key.publicKey.derRepresentation),
            extensions: [Self.appleExtension(5, [(1204, Array(app.appID.utf8))])]
                + app.device.extensions.map(Self.appleExtension)
                + [Self.appleExtension(2, [(1, nonce)])],
            now: now
        )
        let receipt = SimulatedReceipt(
            appID: app.appID,
            leaf: certificates[0],
            clientDataHash: clientDataHash,
            madeAt: now
        )
        let statement = CBORValue.map([
            .init(.text("x5c"), .array(certificates.map { .bytes($0) })),
            .init(.text("receipt"), .bytes(try authority.receipt(receipt.encoded, now: now))),
        ])
        return Data(
            CBORValue.map([
                .init(.text("fmt"), .text("apple-appattest")),
                .init(.text("attStmt"), statement),
                .init(.text("authData"), .bytes(data)),
            ]).encoded
        )
    }

    /// The object of `generateAssertion` with the present counter: `{signature,
    /// authenticatorData}`.
    func assertion(for app: SimulatedApp, clientDataHash: Data) throws -> Data {
        let data = app.authenticatorData(counter: counter) + app.extensionMap
        // The message that is signed is the nonce, so the nonce is hashed once more.
        let nonce = Data(SHA256.hash(data: data + clientDataHash))
        let signature = try key.signature(for: nonce).derRepresentation
        return Data(
            CBORValue.map([
                .init(.text("signature"), .bytes(Array(signature))),
                .init(.text("authenticatorData"), .bytes(data)),
            ]).encoded
        )
    }

    /// RFC 9053 §7.1.1: {1: 2, 3: −7, −1: 1, −2: X, −3: Y}.
    private static func coseKey(of point: Data) -> [UInt8] {
        let coordinates = Array(point.dropFirst())
        return CBORValue.map([
            .init(.integer(1), .integer(2)),
            .init(.integer(3), .integer(-7)),
            .init(.integer(-1), .integer(1)),
            .init(.integer(-2), .bytes(Array(coordinates.prefix(32)))),
            .init(.integer(-3), .bytes(Array(coordinates.suffix(32)))),
        ]).encoded
    }

    /// 1.2.840.113635.100.8.`number`: `SEQUENCE { [tag] EXPLICIT OCTET STRING, … }`.
    private static func appleExtension(
        _ number: UInt32,
        _ values: [(tag: UInt32, value: [UInt8])]
    ) -> CertificateContent.Extension {
        let tagged = values.map {
            DEREncoder.element(.explicit($0.tag), DEREncoder.octetString($0.value))
        }
        let identifier = DEREncoder.objectIdentifier([1, 2, 840, 113_635, 100, 8, number])
        return (identifier, false, DEREncoder.sequence(tagged))
    }
}

/// Keys in files, one for each, named after the key id. Processes may share the folder.
struct SimulatedKeyFolder: Sendable {
    private let url: URL

    /// A folder, which is made if need be.
    init(_ url: URL) throws {
        self.url = url
        try FileManager.default.createDirectory(
            at: url,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
    }

    /// Changes a key while no other process does; keeps what was changed before it returns.
    ///
    /// - Parameters:
    ///   - keyID: the key id in base64.
    ///   - change: gets the key, or `nil` where there is none. A key that it throws for is not
    ///     kept.
    /// - Returns: what `change` returned.
    /// - Throws: what `change` throws, and what the file system does.
    func change<Result>(
        _ keyID: String,
        _ change: (inout SimulatedKey?) throws -> Result
    ) throws -> Result {
        let lock = url.appendingPathComponent("lock")
        let descriptor = open(lock.path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw CocoaError(.fileWriteUnknown) }
        // The lock ends with the descriptor.
        defer { close(descriptor) }
        while flock(descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else { throw CocoaError(.fileLocking) }
        }
        let file = self.file(of: keyID)
        var key = try? JSONDecoder().decode(SimulatedKey.self, from: Data(contentsOf: file))
        let result = try change(&key)
        if let key { try JSONEncoder().encode(key).write(to: file, options: .atomic) }
        return result
    }

    /// base64 has slashes, which a name can't have.
    private func file(of keyID: String) -> URL {
        let name = keyID.map { $0 == "/" ? "_" : $0 == "+" ? "-" : $0 }
        return url.appendingPathComponent(String(name) + ".json")
    }
}
