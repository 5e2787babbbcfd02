public import AppAttest
internal import Cryptography
internal import Encodings
public import RequestBinding
public import Signatures

/// An App Attest key, whose private half a Secure Enclave would hold; or one of Android's keystore.
///
/// A value: a copy is a clone of the key with a counter of its own, which is what an attacker would
/// have. Signing is as fast as OpenSSL signs; keys of different threads share nothing.
public struct SoftwareKey: Sendable {
    /// The device that holds it.
    public let device: SoftwareDevice
    /// Its public half.
    public let publicKey: P256PublicKey
    /// Its key id.
    public let keyID: KeyID
    /// The number of assertions it has made; settable, to be above or below a store.
    public var counter = SignCounter.zero

    let privateKey: P256PrivateKey
    /// What authenticator data begins with, and what an assertion's ends with.
    let appIDHash: [UInt8]
    let extensionMap: [UInt8]

    init(_ privateKey: P256PrivateKey, of device: SoftwareDevice) {
        self.device = device
        self.privateKey = privateKey
        publicKey = privateKey.publicKey
        keyID = KeyID(of: privateKey.publicKey)
        appIDHash = AppIDHash(appID: device.appID).bytes
        extensionMap = device.isAndroid ? [] : device.shape.extensionMap
    }

    /// Another key of the same device, for damage that needs one. Each key always has the same
    /// neighbour.
    var neighbour: P256PrivateKey {
        P256PrivateKey(seed: (keyID.bytes + Array("neighbour".utf8)).span)
    }

    /// The four bytes of a counter.
    static func bytes(of counter: SignCounter) -> [UInt8] {
        let number = counter.rawValue
        return [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }
}

extension SoftwareKey {
    /// The environment in the import line of a key.
    ///
    /// May grow: a `switch` over it has an `@unknown default`.
    @nonexhaustive(warn)
    public enum ImportEnvironment: String, Hashable, Sendable, CaseIterable {
        /// Attested in Apple's production service.
        case production
        /// Attested in Apple's development service.
        case development
        /// Attested by an authority that an app entry's `test_root` trusts.
        case test
    }

    /// This key as a line of `keys import`, without the line feed:
    ///
    ///     {"key_id": …, "app_id": …, "environment": …, "public_key": …, "counter": …}
    ///
    /// `public_key` is base64 of the X9.62 point of 65 bytes, `counter` is the last one. The line
    /// of an Android phone's key has its `platform`, too.
    public func importLine(as environment: ImportEnvironment) -> String {
        var json = JSONWriter()
        json.object { json in
            json.member("key_id", keyID.base64)
            json.member("app_id", device.appID)
            if device.isAndroid { json.member("platform", DevicePlatform.android.rawValue) }
            json.member("environment", environment.rawValue)
            json.member("public_key", Base64.text(publicKey.x963))
            json.member("counter", counter.rawValue)
        }
        return json.text
    }
}

extension SoftwareKey {
    /// A request to be signed, as it goes over the wire.
    public struct Request: Sendable {
        /// The method of the request line.
        public var method: String
        /// The target of the request line, in origin-form with the query.
        public var target: String
        /// The content without transfer codings.
        public var content: [UInt8]
        /// The text of the challenge; `nil` for a rule that asks for none.
        public var challenge: String?
        /// The fields that a rule may want signed, with names in lower case.
        public var fields: [String: String]

        /// A request that needs only its request line.
        public init(
            method: String,
            target: String,
            content: [UInt8] = [],
            challenge: String? = nil,
            fields: [String: String] = [:]
        ) {
            self.method = method
            self.target = target
            self.content = content
            self.challenge = challenge
            self.fields = fields
        }

        /// The request with these signed fields; `digest` is that of its content.
        func described(_ headers: [String], digest: [UInt8]) -> RequestLines.Request {
            RequestLines.Request(
                method: method,
                target: target,
                digest: digest,
                headers: headers.map { ($0, fields[$0]) }
            )
        }
    }

    /// Signs a request with the next assertion of this key.
    ///
    /// - Parameters:
    ///   - request: what is sent.
    ///   - form: what the rule says is signed.
    ///   - damage: what is wrong with the assertion.
    /// - Returns: the fields to send with it.
    public mutating func proof(
        of request: Request,
        signing form: SigningForm,
        damage: AssertionDamage? = nil
    ) -> RequestProof {
        let digest = SHA256.digest(of: request.content).array
        let clientData = Self.clientData(of: request, form, digest)
        let assertion = assertionText(
            clientDataHash: SHA256.digest(of: clientData).array,
            damage: damage
        )
        return RequestProof(
            keyID: keyID.base64,
            assertion: String(decoding: assertion, as: UTF8.self),
            challenge: request.challenge,
            contentDigest: request.content.isEmpty ? nil : "sha-256=:\(Base64.text(digest)):"
        )
    }

    /// The bytes that a device signs for a request; `digest` is that of its content.
    package static func clientData(
        of request: Request,
        _ form: SigningForm,
        _ digest: [UInt8]
    ) -> [UInt8] {
        switch form {
        case .content: request.content
        case .challenge: Array((request.challenge ?? "").utf8)
        case .lines(let parts, let headers):
            RequestLines.clientData(
                parts,
                of: request.described(headers, digest: digest),
                challenge: request.challenge
            )
        }
    }
}

/// The fields that a client sends with a request that it has signed.
public struct RequestProof: Hashable, Sendable {
    /// `App-Attest-Key-Id`: base64, 44 characters.
    public let keyID: String
    /// `App-Attest-Assertion`: base64 of Apple's object, or the text of an Android key.
    public let assertion: String
    /// `App-Attest-Challenge`: the challenge that was signed; `nil` when none was.
    public let challenge: String?
    /// `Content-Digest`: the sha-256 member, for requests with content.
    public let contentDigest: String?

    /// The fields by their standard names, in the order above.
    public var fields: [(name: String, value: String)] {
        [
            ("App-Attest-Key-Id", keyID), ("App-Attest-Assertion", assertion),
            ("App-Attest-Challenge", challenge), ("Content-Digest", contentDigest),
        ].compactMap { field in field.1.map { (field.0, $0) } }
    }
}
