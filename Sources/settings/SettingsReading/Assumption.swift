/// A thing that a configuration names and that is absent where it is only checked: with `--offline`
/// it is assumed to be right.
package struct Assumption: Hashable, Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        case file, folder, variable, database, user
    }

    package let kind: Kind
    /// The file's path, `${NAME}`, the database's address, the user's name.
    package let name: String
    /// The key that names it.
    package let keyPath: String
    package let place: Problem.Place

    package init(_ kind: Kind, named name: String, at place: Problem.Place, _ keyPath: String) {
        (self.kind, self.name, self.place, self.keyPath) = (kind, name, place, keyPath)
    }

    /// `assumed: tls/key.pem (listen[0].tls.key)`
    package var text: String { "assumed: \(name) (\(keyPath))" }
}

/// The assumptions of one load.
package struct Assumptions {
    package private(set) var all: [Assumption] = []
    /// The variables that are assumed, in the order in which they were met.
    private var variables: [String] = []
    /// The keys whose values are assumed as a whole or in part.
    package private(set) var keyPaths: Set<String> = []

    package mutating func add(_ assumption: Assumption) {
        if !all.contains(assumption) { all.append(assumption) }
        if assumption.kind == .variable { keyPaths.insert(assumption.keyPath) }
    }

    /// The number of a variable, from 1 on.
    package mutating func number(of name: String) -> Int {
        if let index = variables.firstIndex(of: name) { return index + 1 }
        variables.append(name)
        return variables.count
    }

    /// Texts that may stand for a variable, a host name first. Those of two variables differ, so
    /// that no address and no app is there twice.
    package static func candidates(for name: String, _ number: Int) -> [String] {
        let words = name.lowercased().split(separator: "_").joined(separator: "-").prefix(40)
        let host = "\(words.isEmpty ? "variable" : String(words))-\(number).invalid"
        // Addresses of this machine, which need no token and no TLS.
        let address = "127.1.\(number >> 8 & 255).\(number & 255)"
        let digits = String(number)
        let team = "A" + String(repeating: "0", count: max(9 - digits.count, 0)) + digits
        return [
            host, "\(host):443", address, "\(address):443", "\(address)/32", "/assumed/\(host)",
            "unix:/assumed/\(host)", "https://\(host)", "https://\(host)/",
            "http://\(host):3128", "\(1_024 + number & 0x7FFF)", team,
            "invalid.assumed\(number)", "assumed\(number)",
        ]
    }
}
