package import Encodings
package import Services

/// The last refusals that a gateway remembers, grouped for `portcullis why --by`.
package struct RefusalGroups {
    private struct Group: Hashable {
        /// The system that the client claims, or its build.
        let name: String
        /// The rule, or the endpoint.
        let place: String
        let reason: String
        /// Whether the client was refused, and not only observed.
        let isRefused: Bool
    }

    private let grouping: ReportGrouping
    private var counts: [Group: Int] = [:]
    /// When each was last: ISO 8601, which is ordered as a text.
    private var last: [Group: String] = [:]

    /// - text: what `/refusals` answers.
    package init(_ text: Span<UInt8>, by grouping: ReportGrouping) throws(JSONError) {
        self.grouping = grouping
        var reader = JSONReader()
        try reader.beginObject(text)
        while let name = try reader.nextName(text) {
            guard name == Array("refusals".utf8) else {
                try reader.skipValue(text, depth: 1)
                continue
            }
            try reader.beginArray(text)
            while try reader.nextElement(text) { try add(&reader, text) }
        }
        try reader.end(text)
    }

    private mutating func add(_ reader: inout JSONReader, _ text: Span<UInt8>) throws(JSONError) {
        var members: [String: String] = [:]
        try reader.beginObject(text)
        while let name = try reader.nextName(text) {
            if case .string(let value) = try reader.scalar(text) {
                members[String(decoding: name, as: UTF8.self)] = String(
                    decoding: value,
                    as: UTF8.self
                )
            }
        }
        let group = Group(
            name: name(of: members),
            place: members["rule"] ?? members["endpoint"] ?? "-",
            reason: members["reason"] ?? "-",
            isRefused: members["fate"] != "forwarded"
        )
        counts[group, default: 0] += 1
        last[group] = max(last[group] ?? "", members["time"] ?? "")
    }

    private func name(of members: [String: String]) -> String {
        switch grouping {
        case .os:
            guard let system = members["os"], let version = members["os_version"] else { break }
            return "\(system) \(version)"
        case .build:
            guard let version = members["app_version"] else { break }
            return members["app_version_source"] == "claimed" ? version + " (claimed)" : version
        }
        return "not known"
    }

    /// A line for each group, the most frequent first.
    package var text: String {
        let title = grouping == .os ? "system" : "build"
        let sorted = counts.sorted {
            ($1.value, $0.key.name, $0.key.place, $0.key.reason)
                < ($0.value, $1.key.name, $1.key.place, $1.key.reason)
        }
        let count = counts.values.reduce(0, +)
        let head = "the last \(count) refusals that are remembered; systems are what clients claim"
        let rows = sorted.map { group, count in
            [
                group.name, group.place, group.reason, "\(count)",
                group.isRefused ? "refused" : "observed", last[group] ?? "",
            ]
        }
        guard !rows.isEmpty else { return "no refusal is remembered\n" }
        let lines = [[title, "rule", "reason", "requests", "fate", "last"]] + rows
        return ([head] + lines.tableLines(texts: 3)).joined(separator: "\n") + "\n"
    }
}
