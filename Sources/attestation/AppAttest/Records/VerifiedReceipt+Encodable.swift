/// A proof can be written and not read: decoded bytes would prove nothing. A server stores the
/// bytes of a receipt, and verifies them again; ``ReceiptFields`` can be read back.
extension VerifiedReceipt: Encodable {
    private enum Key: String, CodingKey {
        case bytes = "receipt"
        case fields
    }

    /// Writes the receipt in base64 and its fields.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encodeBase64(bytes, forKey: .bytes)
        try container.encode(fields, forKey: .fields)
    }
}
