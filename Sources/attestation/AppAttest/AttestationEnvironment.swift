/// Which of Apple's two services attested a key (the AAGUID of an attestation).
public enum AttestationEnvironment: String, Hashable, Codable, Sendable, CaseIterable {
    /// App Store, TestFlight and enterprise builds, and Xcode builds whose entitlement says so.
    case production
    /// Xcode builds.
    case development

    /// The 16 bytes of the AAGUID: "appattest" and seven zeros, or "appattestdevelop".
    ///
    /// "Preparing to use the App Attest service" says "appattestsandbox", which no object has.
    public var aaguid: [UInt8] {
        switch self {
        case .production: Array("appattest".utf8) + [UInt8](repeating: 0, count: 7)
        case .development: Array("appattestdevelop".utf8)
        }
    }

    /// The environment of an AAGUID; `nil` when it is neither.
    init?(aaguid: some Collection<UInt8>) {
        for environment in Self.allCases where environment.aaguid.elementsEqual(aaguid) {
            self = environment
            return
        }
        return nil
    }
}
