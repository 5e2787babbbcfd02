package import JSONText

/// Whether a request must carry a challenge.
package enum ChallengeRule: String, CaseIterable, Sendable {
    /// A request without one is refused.
    case required
    /// Verified and spent where there is one; in the line form its absence is signed as `-`.
    case optional
    /// Not looked at.
    case none
}

/// Where a request carries its challenge.
package enum ChallengeSource: Hashable, Sendable {
    /// In the challenge field of the head.
    case field
    /// In the content, a JSON text, at this place.
    ///
    /// Only where the content itself is signed, so that the challenge is covered.
    case jsonPointer(JSONPointer)
}
