extension AuthenticatorExtensions: Codable {
    private enum Key: String, CodingKey {
        case validationCategory = "validation_category"
        case bundleVersion = "bundle_version"
        case codeDirectoryHash = "code_directory_hash"
        case codeDirectoryHashType = "code_directory_hash_type"
    }

    /// Reads an object; a missing member is one that the device did not send.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        self.init(
            validationCategory: try container.decodeIfPresent(
                ValidationCategory.self,
                forKey: .validationCategory
            ),
            bundleVersion: try container.decodeIfPresent(String.self, forKey: .bundleVersion),
            codeDirectoryHash: try container.decodeBase64IfPresent(forKey: .codeDirectoryHash),
            codeDirectoryHashType: try container.decodeBase64IfPresent(
                forKey: .codeDirectoryHashType
            )
        )
    }

    /// Writes an object of what the device sent: the category as a number, hashes in base64.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encodeIfPresent(validationCategory, forKey: .validationCategory)
        try container.encodeIfPresent(bundleVersion, forKey: .bundleVersion)
        try container.encodeBase64(codeDirectoryHash, forKey: .codeDirectoryHash)
        try container.encodeBase64(codeDirectoryHashType, forKey: .codeDirectoryHashType)
    }
}
