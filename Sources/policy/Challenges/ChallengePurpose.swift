/// What a challenge may be used for. The raw value is its byte in the challenge.
package enum ChallengePurpose: UInt8, CaseIterable, Hashable, Sendable {
    /// Attesting a new key.
    case enrolment = 1
    /// Signing a request.
    case assertion = 2

    /// The word on the wire and in metrics.
    package var name: String {
        switch self {
        case .enrolment: "enrolment"
        case .assertion: "assertion"
        }
    }

    /// The purpose of that name; `nil` for any other text.
    package init?(name: String) {
        guard let purpose = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = purpose
    }
}
