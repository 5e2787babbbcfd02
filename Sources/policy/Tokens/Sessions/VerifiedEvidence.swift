package import AppAttest
package import Encodings

/// The proof that a key has signed a request, on whatever platform.
package struct VerifiedEvidence: Sendable {
    /// The app in which it was signed.
    package let app: AppIDHash
    package let counter: SignCounter
    /// What is signed of the app's build. Apple's systems before 27 and phones with Android sign
    /// nothing of it.
    package let build: AuthenticatorExtensions

    /// - counter: that of the verified signature, which covers the app.
    package init(app: AppIDHash, counter: SignCounter, build: AuthenticatorExtensions = .none) {
        (self.app, self.counter, self.build) = (app, counter, build)
    }

    package init(_ assertion: VerifiedAssertion) {
        self.init(app: assertion.app, counter: assertion.counter, build: assertion.extensions)
    }
}

// The evidence that opened a session, for another process of this gateway.
extension VerifiedEvidence {
    package func write(to out: inout ByteWriter) {
        out.block(app.bytes)
        out.word(UInt64(counter.rawValue))
        // The flags of an assertion, in 1.0.
        out.byte(0)
        out.optional(build.validationCategory) { $0.word(UInt64($1.rawValue)) }
        out.optional(build.bundleVersion) { $0.text($1) }
        out.optional(build.codeDirectoryHash) { $0.block($1) }
        out.optional(build.codeDirectoryHashType) { $0.block($1) }
    }

    package init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        guard let app = AppIDHash(bytes: try bytes.block(max: 32)),
            let counter = UInt32(exactly: try bytes.word())
        else { throw ByteReader.Fault() }
        _ = try bytes.byte()
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
            build: AuthenticatorExtensions(
                validationCategory: category,
                bundleVersion: version,
                codeDirectoryHash: try bytes.optional(block),
                codeDirectoryHashType: try bytes.optional(block)
            )
        )
    }
}
