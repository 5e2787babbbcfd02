internal import ByteCoding

extension X509Certificate: Codable {
    /// Reads base64 of the DER.
    public convenience init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let der = Base64.decode(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "not base64 of a certificate"
            )
        }
        try self.init(der: der)
    }

    /// Writes base64 of the DER.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(Base64.text(der))
    }
}
