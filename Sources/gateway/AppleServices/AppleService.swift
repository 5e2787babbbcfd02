/// What can be asked of Apple. The raw value is a label of metrics.
package enum AppleService: String, CaseIterable, Hashable, Sendable {
    /// A newer receipt for an older one (Apple, "Assessing fraud risk").
    case receipts
    /// The two bits of a device (Apple, "Accessing and modifying per-device data").
    case queryBits = "query-bits"
    /// Both bits written.
    case updateBits = "update-bits"
    /// Whether a device token is genuine.
    case validateToken = "validate-token"

    /// The service of Apple that takes the call. Each has hosts of its own, and fails by itself.
    package enum Family: String, CaseIterable, Hashable, Sendable {
        case receipts
        case deviceCheck = "device-check"
    }

    /// Which of Apple's services takes it.
    package var family: Family {
        switch self {
        case .receipts: .receipts
        case .queryBits, .updateBits, .validateToken: .deviceCheck
        }
    }

    /// The path of the call below its host.
    package var path: String {
        switch self {
        case .receipts: "/v1/attestationData"
        case .queryBits: "/v1/query_two_bits"
        case .updateBits: "/v1/update_two_bits"
        case .validateToken: "/v1/validate_device_token"
        }
    }
}
