/// A proof can be written and not read: decoded bytes would prove nothing. What a server stores of
/// an assertion is its counter.
extension VerifiedAssertion: Encodable {
    private enum Key: String, CodingKey {
        case app = "app_id_hash"
        case counter
        case extensions
    }

    /// Writes the app, the counter and what the device says about the build.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(app, forKey: .app)
        try container.encode(counter, forKey: .counter)
        try container.encode(extensions, forKey: .extensions)
    }
}
