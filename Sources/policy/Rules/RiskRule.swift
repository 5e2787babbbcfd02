package import Signatures

/// What is done about keys of devices that had many keys attested lately: Apple's risk metric.
///
/// The metric counts the app's keys on the device within 30 days. It rises with reinstallations and
/// restored backups as well, so Apple advises to take it as one signal among others. Therefore the
/// rule only marks unless it is told to refuse, and has a rollout of its own.
package struct RiskRule: Equatable, Sendable {
    /// What is done with a key whose metric is not known, or too old.
    package enum Unknown: String, CaseIterable, Sendable {
        case allow, refuse
    }

    /// What becomes of a request that the limit speaks against.
    package enum Action: String, CaseIterable, Sendable {
        /// It passes, and origin, log and metrics are told.
        case mark
        /// It is refused where rule and rollout include the key, and marked otherwise.
        case refuse
    }

    /// What the limit says of a key.
    package enum Finding: Hashable, Sendable {
        case within, exceeded, unknown
    }

    /// The highest limit that can be told from higher metrics.
    package static let limitMax = 65_533
    /// By default a metric holds for as long as Apple takes the receipt that had it: 90 days.
    package static let daysMaxDefault = 90

    /// The highest metric that is within the limit, 0…``limitMax``.
    package let max: Int
    package var unknown = Unknown.allow
    package var action = Action.mark
    /// The most days of a metric's age.
    package var daysMax = daysMaxDefault
    /// For which keys `refuse` refuses.
    package var rollout: Rollout

    /// - `salt`: of the rollout, unless one is given.
    package init(max: Int, salt: String) {
        self.max = max
        rollout = Rollout(.fixed(.whole), salt: salt)
    }

    /// What the limit says of a metric; `nil` for one that is not known.
    package func finding(_ metric: UInt16?) -> Finding {
        guard let metric else { return .unknown }
        return Int(metric) <= max ? .within : .exceeded
    }

    /// Whether a finding speaks against a request.
    package func objects(to finding: Finding) -> Bool {
        switch finding {
        case .within: false
        case .exceeded: true
        case .unknown: unknown == .refuse
        }
    }

    /// Whether a request of this key is refused that the limit speaks against.
    ///
    /// - `keyID`: the 32 bytes of the key that has signed it.
    package func refuses(_ keyID: Span<UInt8>, at now: UnixTime) -> Bool {
        action == .refuse && rollout.enforces(keyID, at: now)
    }
}
