/// A proof can be written and not read: decoded bytes would prove nothing.
/// ``AttestationRecord`` is what a server stores and reads back.
extension VerifiedAttestation: Encodable {
    private enum Key: String, CodingKey {
        case extensions
        case details
        case root
    }

    /// Writes the members of ``AttestationRecord`` and what the device and its certificate say.
    public func encode(to encoder: any Encoder) throws {
        try record.encode(to: encoder)
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(extensions, forKey: .extensions)
        try container.encode(details, forKey: .details)
        try container.encode(root, forKey: .root)
    }
}
