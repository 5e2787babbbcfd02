import Foundation
import RequestBinding

/// What the gateway gave for one enrolment: the challenge that Apple signs, and what is bound to
/// the key with it.
struct EnrolmentGrant: Hashable, Sendable, Codable {
    /// The text of the challenge.
    let challenge: String
    /// What the gateway keeps with the key; `nil` for nothing.
    let context: Data?
    /// When the challenge ends, in seconds since 1970.
    let until: Double
}
