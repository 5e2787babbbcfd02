package import Signatures

/// The rule for keys of devices that had many keys attested lately: Apple's risk metric.
///
/// The metric counts the app's keys on the device within 30 days. It rises with reinstallations and
/// restored backups as well, so Apple advises to take it as one signal among others. Therefore the
/// rule only marks by default. `refuse` is a choice of the operator and has a rollout of its own.
package struct RiskRule: Equatable, Sendable {
    /// The treatment of a key whose metric is unknown or too old.
    package enum Unknown: String, CaseIterable, Sendable {
        case allow, refuse
    }

    /// The treatment of a request whose key is over the limit.
    package enum Action: String, CaseIterable, Sendable {
        /// The request passes. Origin, log and metrics get the finding.
        case mark
        /// The request is refused where rule and rollout include the key, and marked otherwise.
        case refuse
    }

    /// The result of comparing a key's metric with the limit.
    package enum Finding: Hashable, Sendable {
        case within, exceeded, unknown
    }

    /// The highest limit that can be distinguished from higher metrics.
    package static let limitMax = 65_533
    /// The default: a metric is valid for as long as Apple accepts the receipt that had it, 90
    /// days.
    package static let daysMaxDefault = 90

    /// The highest metric that is within the limit, 0…``limitMax``.
    package var max: Int
    package var unknown = Unknown.allow
    package var action = Action.mark
    /// The most days of a metric's age.
    package var daysMax = daysMaxDefault
    /// The keys for which `refuse` refuses.
    package var rollout: Rollout

    /// - `salt`: of the rollout, unless one is given.
    package init(max: Int, salt: String) {
        self.max = max
        rollout = Rollout(.fixed(.whole), salt: salt)
    }

    /// The finding for a metric; `nil` for an unknown metric.
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

    /// Whether keys that are over the limit are treated differently by their bucket.
    var dependsOnBucket: Bool { action == .refuse && rollout.dependsOnBucket }

    /// Whether a request of this key, against which the limit speaks, is refused.
    ///
    /// - `keyID`: the 32 bytes of the key that has signed it.
    package func refuses(_ keyID: Span<UInt8>, at now: UnixTime) -> Bool {
        action == .refuse && rollout.enforces(keyID, at: now)
    }
}
