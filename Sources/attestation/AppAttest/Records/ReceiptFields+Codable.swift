internal import Cryptography

extension ReceiptFields: Codable {
    private enum Key: String, CodingKey {
        case appID = "app_id"
        case certificate
        case clientHash = "client_hash"
        case token
        case kind = "type"
        case environment
        case creationTime = "creation_time"
        case riskMetric = "risk_metric"
        case notBefore = "not_before"
        case expirationTime = "expiration_time"
    }

    /// Reads an object; a missing member is a field that the receipt did not have.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        appID = try container.decode(String.self, forKey: .appID)
        certificate = try container.decode(X509Certificate.self, forKey: .certificate)
        clientHash = try container.decodeBase64IfPresent(forKey: .clientHash)
        token = try container.decodeBase64IfPresent(forKey: .token)
        kind = try container.decode(Kind.self, forKey: .kind)
        environment = try container.decodeIfPresent(String.self, forKey: .environment)
        creationTime = try container.decode(UnixTime.self, forKey: .creationTime)
        riskMetric = try container.decodeIfPresent(UInt32.self, forKey: .riskMetric)
        notBefore = try container.decodeIfPresent(UnixTime.self, forKey: .notBefore)
        expirationTime = try container.decodeIfPresent(UnixTime.self, forKey: .expirationTime)
    }

    /// Writes an object of the fields there are: times in ISO 8601, bytes in base64.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(appID, forKey: .appID)
        try container.encode(certificate, forKey: .certificate)
        try container.encodeBase64(clientHash, forKey: .clientHash)
        try container.encodeBase64(token, forKey: .token)
        try container.encode(kind, forKey: .kind)
        try container.encodeIfPresent(environment, forKey: .environment)
        try container.encode(creationTime, forKey: .creationTime)
        try container.encodeIfPresent(riskMetric, forKey: .riskMetric)
        try container.encodeIfPresent(notBefore, forKey: .notBefore)
        try container.encodeIfPresent(expirationTime, forKey: .expirationTime)
    }
}
