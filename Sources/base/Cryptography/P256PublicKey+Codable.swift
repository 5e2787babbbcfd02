internal import ByteCoding

extension P256PublicKey: Codable {
    /// Reads base64 of the X9.62 point of 65 bytes.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let bytes = Base64.decode(text), let key = P256PublicKey(x963: bytes) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "not base64 of a point on P-256"
            )
        }
        self = key
    }

    /// Writes base64 of the X9.62 point of 65 bytes.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(Base64.text(x963))
    }
}
