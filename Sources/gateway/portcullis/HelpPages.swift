import ConfigurationReading
import Foundation

/// The pages that `portcullis help TOPIC` prints.
///
/// They are files beside the program, not part of it: a corrected text needs no build, and the
/// binary stays small. A topic is the name of a page.
struct HelpPages {
    /// The pages by topic.
    private let files: [String: URL]

    /// - program: the path of this program.
    ///
    /// The pages are in `share/portcullis/help` of the program's installation folder, or in the
    /// repository in which it was built.
    init(besides program: URL) {
        let installed = program.appending(path: "../../share/portcullis/help").standardized
        var files = Self.files(below: installed)
        var folder = program.deletingLastPathComponent()
        while files.isEmpty, folder.path != "/" {
            files = ["deploy/docs", "rules/docs", "Sources/client/docs"].reduce(
                into: [:]
            ) { files, name in
                files.merge(Self.files(below: folder.appending(path: name))) { first, _ in first }
            }
            folder.deleteLastPathComponent()
        }
        self.files = files
    }

    private static func files(below folder: URL) -> [String: URL] {
        let names = FileManager.default.enumerator(atPath: folder.path)
        return (names?.compactMap { $0 as? String } ?? [])
            .filter { $0.hasSuffix(".md") && !$0.hasSuffix("README.md") }
            .reduce(into: [:]) { files, name in
                let file = folder.appending(path: name)
                files[file.deletingPathExtension().lastPathComponent] = file
            }
    }

    /// The text of a page; `nil` without a page of this topic.
    func text(_ topic: String) -> String? {
        files.first { $0.key.lowercased() == topic.lowercased() }
            .flatMap { try? String(contentsOf: $0.value, encoding: .utf8) }
    }

    /// The message for a topic without a page.
    func absence(of topic: String) -> String {
        guard !files.isEmpty else {
            return "portcullis: no pages are installed beside this program; "
                + "next: read them in the repository, or install the package"
        }
        let topics = files.keys.sorted()
        let meant = Suggestion.closest(to: topic, among: topics)
        let near = topics.filter { $0.lowercased().contains(topic.lowercased()) }
        let found = meant.map { [$0] } ?? near
        let hint = found.isEmpty ? "" : "; did you mean \(found.joined(separator: ", "))?"
        return "portcullis: there is no page \(topic)\(hint)\ntopics: "
            + topics.joined(separator: " ")
    }
}
