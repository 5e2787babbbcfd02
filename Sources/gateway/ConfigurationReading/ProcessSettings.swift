/// What the process gives up before it serves. Taken at the start only.
package struct ProcessSettings: Hashable, Sendable {
    private enum CoreDumps: String, CaseIterable {
        case on, off
    }

    /// `user`: the user that a process changes to after root has started it, its addresses are
    /// bound and its keys are read. `nil`: it keeps the user that has started it.
    package var user: String?
    /// `group`: default the user's own, with those that it is a member of.
    package var group: String?
    /// `core_dumps`: whether the memory, with all that is secret in it, may be written into a core
    /// file, or read by another process of the same user. Default off.
    package var allowsCoreDumps = false

    package init() {}

    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        let keys = ["user", "group", "core_dumps"]
        guard let node, let reader = MappingReader(node, "process", keys: keys, log: log) else {
            return
        }
        user = reader.value("user", use: "a user's name", Self.name)?.value
        group = reader.value("group", use: "a group's name", Self.name)?.value
        if reader.has("group"), !reader.has("user") {
            reader.log.error(
                reader.place(of: "group"),
                reader.path("group"),
                found: "it without user",
                use: "user beside it"
            )
        }
        allowsCoreDumps = reader.word("core_dumps", CoreDumps.self)?.value == .on
    }

    /// What the databases of users and groups can hold: no colon, no white space.
    private static func name(_ text: String) -> String? {
        let isPlain = text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ":") }
        return isPlain && (1...32).contains(text.utf8.count) ? text : nil
    }
}
