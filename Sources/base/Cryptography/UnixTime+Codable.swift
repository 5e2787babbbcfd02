extension UnixTime: Codable {
    /// Reads the text of ``iso8601``.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let time = UnixTime(iso8601: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "not a time such as 2026-04-20T10:00:00Z"
            )
        }
        self = time
    }

    /// Writes the text of ``iso8601``.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(iso8601)
    }
}
