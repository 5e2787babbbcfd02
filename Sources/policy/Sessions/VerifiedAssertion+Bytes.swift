internal import AppAttest
internal import ByteCoding
internal import DeviceKey

// What opened a session, for a process of this gateway.
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
