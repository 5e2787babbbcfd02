import Foundation

/// What is kept about this install's key, so that nothing that Apple was asked for is lost.
///
/// ```
/// none → generated(key) → generated(key, grant) → attested(key, grant, object) → enrolled(key)
/// ```
struct EnrolmentRecord: Equatable, Sendable {
    /// How far the key came.
    enum Phase: Equatable, Sendable {
        /// No key.
        case none
        /// The service has the key. With a grant, Apple may have been asked: the same key and the
        /// same grant are tried again.
        case generated(keyID: String, EnrolmentGrant?)
        /// Apple attested the key. The gateway may have it.
        case attested(keyID: String, EnrolmentGrant, object: Data)
        /// The gateway has the key.
        case enrolled(keyID: String)
    }

    /// Who enrols now. Others wait until it ends.
    struct Lease: Hashable, Sendable, Codable {
        /// A ``PortcullisSession``, by a random text.
        let holder: String
        /// Its process.
        let process: Int32
        /// When it ends, in seconds since 1970.
        let until: Double
    }

    /// The endpoints of the gateway that has the key.
    var gateway: String
    var phase = Phase.none
    var lease: Lease?
    /// Whether the enrolled key is bound to a context; `nil` where an older build enrolled it.
    var hasContext: Bool?
    /// When keys were attested in the last day, oldest first, in seconds since 1970.
    var attestations: [Double] = []
    /// The last key among them. Apple may be asked for it several times.
    var countedKey: String?
    /// When keys were lost or refused in the last day, oldest first.
    var losses: [Double] = []
    /// How many tries failed since the last one that did not.
    var failures = 0
    /// How often the device failed to make or attest a key, in a way that lasts, since one of its
    /// keys was attested.
    var deviceFailures = 0
    /// Until when nothing is tried.
    var hold: EnrolmentHold?

    init(gateway: String) { self.gateway = gateway }

    /// The key, however far it came.
    var keyID: String? {
        switch phase {
        case .none: nil
        case .generated(let keyID, _), .attested(let keyID, _, _), .enrolled(let keyID): keyID
        }
    }

    /// Whether the key is, or would be, bound to a context, as far as it is known.
    var mayHaveContext: Bool {
        switch phase {
        case .none: false
        case .generated(_, let grant): grant?.context != nil
        case .attested(_, let grant, _): grant.context != nil
        case .enrolled: hasContext ?? true
        }
    }

    /// Whether the device counts as one that can't attest. One failure may pass.
    var isDeviceBroken: Bool { deviceFailures >= 2 }

    /// How far the phase is from none.
    var progress: Int {
        switch phase {
        case .none: 0
        case .generated(_, nil): 1
        case .generated: 2
        case .attested: 3
        case .enrolled: 4
        }
    }
}
