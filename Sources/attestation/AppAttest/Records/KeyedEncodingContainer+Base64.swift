internal import ByteCoding

extension KeyedEncodingContainer {
    /// Writes bytes as base64, and nothing for `nil`.
    mutating func encodeBase64(_ bytes: [UInt8]?, forKey key: Key) throws {
        try encodeIfPresent(bytes.map { Base64.text($0) }, forKey: key)
    }
}

extension KeyedDecodingContainer {
    /// Reads bytes that have to be there.
    func decodeBase64(forKey key: Key) throws -> [UInt8] {
        guard let bytes = Base64.decode(try decode(String.self, forKey: key)) else {
            throw DecodingError.dataCorruptedError(
                forKey: key,
                in: self,
                debugDescription: "not base64"
            )
        }
        return bytes
    }

    /// Reads bytes; `nil` when the member is missing or null.
    func decodeBase64IfPresent(forKey key: Key) throws -> [UInt8]? {
        guard contains(key), try !decodeNil(forKey: key) else { return nil }
        return try decodeBase64(forKey: key)
    }
}
