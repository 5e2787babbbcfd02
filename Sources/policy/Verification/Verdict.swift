/// What was found out about a request.
package enum Verdict: Equatable, Sendable {
    /// Everything that the rule asks holds.
    case pass
    /// Something does not hold.
    case refuse(Refusal)
    /// It could not be found out: a party that is needed failed.
    case failure(Dependency)

    /// A party that the verdict needs.
    package enum Dependency: String, CaseIterable, Sendable {
        case store
        /// Apple's DeviceCheck.
        case deviceCheck = "device-check"

        /// How its failure is answered where a rule refuses on it.
        package var refusal: Refusal {
            switch self {
            case .store: .storeUnavailable
            case .deviceCheck: .deviceCheckUnavailable
            }
        }
    }

    /// The word for logs and the origin: `pass`, `refuse` or `error`.
    package var word: String {
        switch self {
        case .pass: "pass"
        case .refuse: "refuse"
        case .failure: "error"
        }
    }

    /// The reason for logs, metrics and the origin; empty for a pass.
    package var reason: String {
        switch self {
        case .pass: ""
        case .refuse(let refusal): refusal.rawValue
        case .failure(let dependency): dependency.refusal.rawValue
        }
    }
}
