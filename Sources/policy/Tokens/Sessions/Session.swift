package import AppAttest
internal import Cryptography
package import DeviceKey
internal import Encodings
package import RequestBinding
package import Signatures
internal import Synchronization

/// One open session. Shared by the event loops; only its window changes.
package final class Session: Sendable {
    /// The key whose assertion opened it.
    package let keyID: KeyID
    /// That assertion. It says which build of the app has opened the session.
    package let assertion: VerifiedAssertion
    let id: SessionID
    private let secret: HMACSHA256.Key
    private let window: Mutex<SequenceWindow>
    /// The successor decides about numbers, once there is one.
    private let succession: SessionSuccession

    init(
        _ id: SessionID,
        _ secret: SHA256Digest,
        window: SequenceWindow,
        keyID: KeyID,
        assertion: VerifiedAssertion,
        succession: SessionSuccession
    ) {
        self.id = id
        self.keyID = keyID
        self.assertion = assertion
        let bytes = secret.bytes
        self.secret = HMACSHA256.Key(bytes.span)
        self.window = Mutex(window)
        self.succession = succession
    }

    /// The signature of client data.
    package func signature(of lines: Span<UInt8>) -> SHA256Digest { secret.code(lines) }

    /// The signature of client data in two pieces.
    package func signature(of first: Span<UInt8>, _ second: Span<UInt8>) -> SHA256Digest {
        secret.code(first, second)
    }

    /// Whether the session is no longer good. A session that was found may expire before the
    /// content arrives.
    ///
    /// - now: the wall clock, seconds since 1970.
    package func isOver(at now: Int64) -> Bool { now >= id.expiry }

    /// Whether a number is free now.
    package func admits(_ number: SequenceNumber) -> Bool {
        if let successor = succession.place.holder { return admits(number, by: successor) }
        return window.withLock { $0.admits(number) }
    }

    /// Uses a number: `true` for exactly one of all callers.
    ///
    /// Call it after the signature over the number was verified.
    package func use(_ number: SequenceNumber) -> Bool {
        if let successor = succession.place.holder { return use(number, by: successor) }
        return window.withLock { $0.use(number) }
    }

    func writeWindow(to out: inout ByteWriter) { window.withLock { $0.write(to: &out) } }
}

// The assertion that opened a session, for another process of this gateway.
extension VerifiedAssertion {
    func write(to out: inout ByteWriter) {
        out.block(app.bytes)
        out.word(UInt64(counter.rawValue))
        out.byte(flags)
        out.optional(extensions.validationCategory) { $0.word(UInt64($1.rawValue)) }
        out.optional(extensions.bundleVersion) { $0.text($1) }
        out.optional(extensions.codeDirectoryHash) { $0.block($1) }
        out.optional(extensions.codeDirectoryHashType) { $0.block($1) }
    }

    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        guard let app = AppIDHash(bytes: try bytes.block(max: 32)),
            let counter = UInt32(exactly: try bytes.word())
        else { throw ByteReader.Fault() }
        let flags = try bytes.byte()
        let category = try bytes.optional { (bytes) throws(ByteReader.Fault) in
            guard let number = UInt32(exactly: try bytes.word()) else { throw ByteReader.Fault() }
            return ValidationCategory(rawValue: number)
        }
        func block(_ bytes: inout ByteReader) throws(ByteReader.Fault) -> [UInt8] {
            try bytes.block(max: AuthenticatorExtensions.bytesMax)
        }
        let version = try bytes.optional { (bytes) throws(ByteReader.Fault) in
            try bytes.text(max: AuthenticatorExtensions.bytesMax)
        }
        self.init(
            app: app,
            counter: SignCounter(rawValue: counter),
            extensions: AuthenticatorExtensions(
                validationCategory: category,
                bundleVersion: version,
                codeDirectoryHash: try bytes.optional(block),
                codeDirectoryHashType: try bytes.optional(block)
            ),
            flags: flags
        )
    }
}
