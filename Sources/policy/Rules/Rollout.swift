package import Cryptography

/// For which share of the keys `enforce` refuses; all others are treated as in `observe`.
///
/// Sticky: a key's bucket is a function of the salt and the key. Monotone: raising the share takes
/// in keys and leaves out none. Salted per rule: a key's place in one rule's rollout is independent
/// of its place in another's.
///
/// It limits how many clients a mistake hits. It is no barrier: a client can get out of it with
/// another key or address.
package struct Rollout: Sendable {
    /// The share, as it stands or as it grows.
    package enum Schedule: Hashable, Sendable {
        case fixed(Share)
        /// No key before `from`; then linear from `start` to `end` at `to`; then `end`.
        ///
        /// A date stands for its first second in UTC. `from` is before `to`, `start` not above
        /// `end`, and the years are four digits.
        case growing(from: UnixTime, to: UnixTime, start: Share, end: Share)
    }

    /// What is put into a bucket.
    package enum Subject: String, CaseIterable, Sendable {
        /// The key that has signed the request; the client address without one. A key id that is
        /// only named could be chosen so that it falls outside.
        case key
        case address
    }

    package let schedule: Schedule
    package let subject: Subject
    /// The key of the HMAC: the rule's id, unless rules are to be correlated on purpose.
    package let salt: String
    private let key: HMACSHA256.Key

    package init(_ schedule: Schedule, by subject: Subject = .key, salt: String) {
        self.schedule = schedule
        self.subject = subject
        self.salt = salt
        let octets = Array(salt.utf8)
        key = HMACSHA256.Key(octets.span)
    }

    /// The share at a moment.
    package func share(at now: UnixTime) -> Share {
        switch schedule {
        case .fixed(let share): return share
        case .growing(let from, let to, let start, let end):
            guard now >= from else { return .none }
            guard now < to else { return end }
            // Years end at 9999, so the product stays below 2.6 × 10¹⁷.
            let gone = now.seconds - from.seconds
            let span = max(1, to.seconds - from.seconds)
            let growth = Int64(end.millionths - start.millionths) * gone / span
            return Share(millionths: start.millionths + Int(growth)) ?? end
        }
    }

    /// HMAC-SHA-256 with the salt as its key, over the key id's 32 bytes or the address's 4 or 16.
    package func bucket(of subject: Span<UInt8>) -> Bucket {
        let mac = key.code(subject).bytes
        return Bucket(mac: mac.span)
    }

    /// Whether the rule is enforced for this key or address now. Hashes only when the share is
    /// neither nothing nor everything.
    package func enforces(_ subject: Span<UInt8>, at now: UnixTime) -> Bool {
        let share = share(at: now)
        if share == .none { return false }
        return share == .whole || bucket(of: subject).isWithin(share)
    }

    /// When the growing share takes a bucket in; `nil` where it never does, or does not grow.
    package func admission(of bucket: Bucket) -> UnixTime? {
        guard case .growing(let from, let to, let start, let end) = schedule,
            bucket.isWithin(end)
        else { return nil }
        guard !bucket.isWithin(start) else { return from }
        // The share is below 10⁶ and the span below 2.6 × 10¹¹ seconds. Rounded up, since
        // ``share(at:)`` rounds down.
        let growth = Int64(max(end.millionths - start.millionths, 1))
        let missing = Int64(bucket.number + 1 - start.millionths)
        let span = max(1, to.seconds - from.seconds)
        return UnixTime(seconds: from.seconds + (missing * span + growth - 1) / growth)
    }

    /// The rollout in words: `25% by key`.
    package var text: String {
        "\(schedule.text) by \(subject.rawValue)"
    }
}

extension Rollout: Equatable {
    package static func == (left: Rollout, right: Rollout) -> Bool {
        left.schedule == right.schedule && left.subject == right.subject && left.salt == right.salt
    }
}
