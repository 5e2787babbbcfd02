import Foundation

/// Blocks of commands that the tests do not execute, each with its reason.
enum NotExecuted {
    /// The text and the first line of the block, with the reason.
    static let reasons: [String: [String: String]] = [
        "README.md": [
            "deploy/quickstart": "installs packages and builds"
        ],
        "deploy/docs/install.md": [
            "deploy/strip .build/release/portcullis .build/stripped": "needs root and systemd",
            "openssl genpkey -algorithm ed25519 -out release.key":
                "builds for release, and installs a package",
            #"docker build -f deploy/Containerfile -t portcullis . \"#:
                "needs Docker",
        ],
        "deploy/docs/fleet.md": [
            "portcullis store migrate owner.yaml": "needs PostgreSQL: StoreCopyScenarios"
        ],
        "deploy/docs/performance.md": [
            "deploy/benchmark --markdown": "builds for release and takes minutes"
        ],
    ]

    /// A line without its prompt and its comment.
    static func command(_ line: String) -> String {
        let command = line.hasPrefix("$ ") ? line.dropFirst(2) : line[...]
        let end = command.firstRange(of: " #")?.lowerBound ?? command.endIndex
        return command[..<end].trimmingCharacters(in: .whitespaces)
    }

    static func reason(_ document: String, _ block: Document.Block) -> String? {
        let first = block.lines.first ?? ""
        return reasons[document]?[command(first)]
    }
}
