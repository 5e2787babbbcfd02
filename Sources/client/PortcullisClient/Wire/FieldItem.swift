/// A field that is one token with parameters (an item of RFC 8941 §3.3):
/// `sign-again;sign="method target";counter=64`.
///
/// A parameter that can't be read is passed over: newer gateways may write more of them.
struct FieldItem: Hashable, Sendable {
    let word: String
    private let parameters: [String: String]

    /// The longest field that is read. A field of the gateway is far shorter.
    private static let bytesMax = 8 << 10

    init?(_ text: String) {
        guard text.utf8.count <= Self.bytesMax else { return nil }
        var reader = FieldReader(text)
        reader.skipSpace()
        guard let word = reader.token() else { return nil }
        self.word = word
        var parameters: [String: String] = [:]
        while true {
            reader.skipSpace()
            guard reader.take(";") else { break }
            reader.skipSpace()
            if let (name, value) = reader.parameter() {
                parameters[name] = value
            } else {
                reader.skip(to: ";")
            }
        }
        self.parameters = parameters
    }

    subscript(name: String) -> String? { parameters[name] }
}
