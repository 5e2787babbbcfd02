internal import Cryptography

extension LeafDetails: Codable {
    private enum Key: String, CodingKey {
        case commonName = "common_name"
        case notBefore = "not_before"
        case notAfter = "not_after"
        case osVersion = "os_version"
        case osBuild = "os_build"
        case platform
        case track
        case appID = "app_id"
        case accessControl = "access_control"
    }

    /// Reads an object; a missing member is one that the certificate did not have.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        func text(_ key: Key) throws -> String? {
            try container.decodeIfPresent(String.self, forKey: key)
        }
        commonName = try text(.commonName)
        notBefore = try container.decode(UnixTime.self, forKey: .notBefore)
        notAfter = try container.decode(UnixTime.self, forKey: .notAfter)
        osVersion = try text(.osVersion)
        osBuild = try text(.osBuild)
        platform = try text(.platform)
        track = try text(.track)
        appID = try text(.appID)
        accessControl = try container.decodeBase64IfPresent(forKey: .accessControl)
    }

    /// Writes an object of what the certificate has: times in ISO 8601, bytes in base64.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encodeIfPresent(commonName, forKey: .commonName)
        try container.encode(notBefore, forKey: .notBefore)
        try container.encode(notAfter, forKey: .notAfter)
        try container.encodeIfPresent(osVersion, forKey: .osVersion)
        try container.encodeIfPresent(osBuild, forKey: .osBuild)
        try container.encodeIfPresent(platform, forKey: .platform)
        try container.encodeIfPresent(track, forKey: .track)
        try container.encodeIfPresent(appID, forKey: .appID)
        try container.encodeBase64(accessControl, forKey: .accessControl)
    }
}
