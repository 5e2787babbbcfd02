/// The least that makes a running gateway take a change of a key.
package enum ChangeNeed: Int, Comparable, Sendable {
    /// A reload takes it.
    case reload
    /// A reload refuses it. A new process can take over from the one that runs.
    case upgrade
    /// Only a restart takes it.
    case restart

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// A key whose value differs between two configurations.
package struct SettingChange: Hashable, Sendable {
    /// The key from the file's root: `limits.http2.streams`.
    package let keyPath: String
    /// The values as a file writes them; `nil` where they don't fit on a line.
    package let from: String?
    package let to: String?
    package private(set) var needs = ChangeNeed.reload
    /// What happened, where the values are not told.
    package let word: String

    package init(keyPath: String, from: String? = nil, to: String? = nil, word: String = "changed")
    {
        (self.keyPath, self.from, self.to, self.word) = (keyPath, from, to, word)
    }

    /// The same change of a key in a section that needs at least this.
    package func needing(_ need: ChangeNeed) -> SettingChange {
        var change = self
        change.needs = max(needs, need)
        return change
    }

    /// `timeouts.head: 10s → 15s, which needs an upgrade`
    package var text: String {
        let need: String =
            switch needs {
            case .reload: ""
            case .upgrade: ", which needs an upgrade or a restart"
            case .restart: ", which needs a restart"
            }
        let values = from.flatMap { from in to.map { "\(from) → \($0)" } }
        return "\(keyPath): \(values ?? word)\(need)"
    }
}

/// What a key means, in words: for the schema and the pages.
package struct KeyNotes: Hashable, Sendable {
    /// One sentence or two.
    package var meaning = ""
    /// What holds without the key, where no value stands for it.
    package var otherwise: String?
    /// The reason of the default; empty where the meaning says enough.
    package var reason = ""
    package var needs = ChangeNeed.reload
    /// The version that had the key first.
    package var since = "1.0"
    /// The default as a file writes it; `nil` where absence has no written form.
    package var standard: String?

    /// The meaning, then the reason of the default, then what a change needs.
    package var text: String {
        var parts = [meaning]
        if let otherwise { parts.append("Without it, \(otherwise).") }
        if !reason.isEmpty { parts.append("Its default: \(reason).") }
        switch needs {
        case .reload: break
        case .upgrade: parts.append("A change needs an upgrade or a restart.")
        case .restart: parts.append("A change needs a restart.")
        }
        if since != "1.0" { parts.append("Since \(since).") }
        return parts.joined(separator: " ")
    }
}
