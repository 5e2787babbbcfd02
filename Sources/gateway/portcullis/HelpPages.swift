import ArgumentParser
import ConfigurationReading
import Foundation

/// The pages that `portcullis help TOPIC` prints, and the search for a word in them.
///
/// They are files beside the program, not part of it: a corrected text needs no build, and the
/// binary stays small. A topic is the name of a page, with or without its ending. A page may end
/// with a line of other words that it is found by, which is not printed.
struct HelpPages {
    /// The most pages that are listed because their text has a word.
    private static let mentionsMax = 12
    /// The names of commands: `help` with one of them is about the command.
    private static let commands = Set(
        Portcullis.configuration.subcommands.compactMap { $0.configuration.commandName }
    )

    /// The pages by topic.
    private let files: [String: URL]
    /// Where pages were looked for.
    private let places: String

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
        let own = program.deletingLastPathComponent().standardized.path
        places = "\(installed.path), and deploy/docs in \(own) and the folders above it"
    }

    /// The first page of a folder has the folder's name: `runbook`.
    private static func files(below folder: URL) -> [String: URL] {
        let names = FileManager.default.enumerator(atPath: folder.path)
        return (names?.compactMap { $0 as? String } ?? [])
            .filter { $0.hasSuffix(".md") }
            .reduce(into: [:]) { files, name in
                let file = folder.appending(path: name)
                let page = file.deletingPathExtension()
                let isFirst = page.lastPathComponent == "README"
                let topic = isFirst ? page.deletingLastPathComponent() : page
                files[topic.lastPathComponent] = file
            }
    }

    /// The text for some words: the page that has the name, or the only one that has all the words
    /// in its name or a heading, or a list of the pages in which they are. `nil` when no page has
    /// them.
    func text(_ words: [String]) -> String? {
        let name = words.joined(separator: "-").lowercased()
        let page = name.hasSuffix(".md") ? String(name.dropLast(3)) : name
        if let file = files.first(where: { $0.key.lowercased() == page })?.value {
            return HelpPage.text(of: file)
        }
        let wanted = words.flatMap(Self.words)
        guard !wanted.isEmpty else { return nil }
        return list(words.joined(separator: " "), wanted)
    }

    /// The pages that are about a command, by their names, headings and other words; `nil` without
    /// one.
    func list(about words: [String]) -> String? {
        let wanted = words.flatMap(Self.words)
        let found = search(wanted).found
        guard !wanted.isEmpty, !found.isEmpty else { return nil }
        let lines = found.prefix(Self.mentionsMax).map { line($0.page, $0.heading) }
        return (["PAGES:"] + lines).joined(separator: "\n") + "\n"
    }

    /// A page with the heading that has the words of a search, where one has them.
    private typealias Found = (page: HelpPage, heading: String?)

    /// The pages that have all words in their name, in one heading or among their other words, and
    /// those that have them in their text.
    private func search(_ wanted: [String])
        -> (found: [Found], mentioned: [(page: HelpPage, count: Int)])
    {
        let pages = files.compactMap { HelpPage(topic: $0.key, file: $0.value) }.sorted()
        var found: [Found] = []
        var mentioned: [(page: HelpPage, count: Int)] = []
        for page in pages {
            let heading = page.headings.first { Self.contains(Self.words($0), wanted) }
            if heading != nil || isNamed(page, wanted) {
                found.append((page, heading))
                continue
            }
            let count = wanted.map(page.mentions).min() ?? 0
            if count > 0 { mentioned.append((page, count)) }
        }
        return (found, mentioned)
    }

    /// Whether the words are in a page's name, or among its other words.
    private func isNamed(_ page: HelpPage, _ wanted: [String]) -> Bool {
        Self.contains(Self.nameWords(page.topic), wanted)
            || page.otherWords.contains { name in
                let words = Self.words(String(name))
                return words.count == wanted.count && Self.contains(words, wanted)
            }
    }

    /// The pages that have all words in their name or in one heading, then those that have them in
    /// their text.
    private func list(_ topic: String, _ wanted: [String]) -> String? {
        let (found, mentioned) = search(wanted)
        guard !found.isEmpty || !mentioned.isEmpty else { return nil }
        if found.count == 1, let page = found.first?.page, let file = files[page.topic],
            isNamed(page, wanted)
        {
            return HelpPage.text(of: file)
        }
        var lines: [String] = []
        if !found.isEmpty {
            lines.append("pages about \(topic):")
            lines += found.map { line($0.page, $0.heading) }
        }
        if !mentioned.isEmpty {
            // The runbook first, then those that have it most often.
            let sorted = mentioned.sorted { left, right in
                let (mine, other) = (left.page.isOfRunbook, right.page.isOfRunbook)
                return mine != other ? mine : left.count > right.count
            }
            lines.append("pages that mention it:")
            lines += sorted.prefix(Self.mentionsMax).map { line($0.page, nil) }
        }
        return (lines + ["next: portcullis help NAME prints one of them"])
            .joined(separator: "\n") + "\n"
    }

    private func line(_ page: HelpPage, _ heading: String?) -> String {
        let name = Self.commands.contains(page.topic) ? page.topic + ".md" : page.topic
        let gap = String(repeating: " ", count: max(2, 30 - name.count))
        let title = page.headings.first ?? ""
        let part = heading.flatMap { $0 == title ? nil : " (\($0))" } ?? ""
        return "  \(name)\(gap)\(title)\(part)"
    }

    /// Letters and digits in a row, in lower case.
    private static func words(_ text: String) -> [String] {
        text.lowercased().split { !$0.isLetter && !$0.isNumber }.map(String.init)
    }

    /// `PortcullisStoreFull` has three words.
    private static func nameWords(_ name: String) -> [String] {
        words(name.replacing(/[A-Z][a-z]/) { " " + $0.output })
    }

    /// Whether each wanted word is the start of one of the words.
    private static func contains(_ words: [String], _ wanted: [String]) -> Bool {
        wanted.allSatisfy { word in words.contains { $0.hasPrefix(word) } }
    }

    /// The message for a topic that no page has.
    func absence(of topic: String) -> String {
        guard !files.isEmpty else {
            return "portcullis: no pages are installed beside this program (looked in \(places)); "
                + "next: copy them as deploy/docs/install.md says, or install the package"
        }
        let topics = files.keys.sorted().map { Self.commands.contains($0) ? "\($0).md" : $0 }
        let meant = Suggestion.closest(to: topic, among: topics)
        let hint = meant.map { "; did you mean \($0)?" } ?? ""
        return "portcullis: there is no page \(topic), and none has the word\(hint)\ntopics: "
            + topics.joined(separator: " ")
    }
}

/// A page that is searched.
private struct HelpPage: Comparable {
    private static let otherWordsMark = "<!-- words: "

    let topic: String
    /// The title first.
    let headings: [String]
    /// What people call this, as a line of the page has it: `<!-- words: rollback, downgrade -->`.
    let otherWords: [Substring]
    let isOfRunbook: Bool
    /// Its bytes, ASCII letters in lower case.
    private let bytes: [UInt8]

    /// `nil` for a file that can't be read.
    init?(topic: String, file: URL) {
        guard let text = try? String(contentsOf: file, encoding: .utf8) else { return nil }
        self.topic = topic
        isOfRunbook = file.deletingLastPathComponent().lastPathComponent == "runbook"
        bytes = text.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
        var headings: [String] = []
        var otherWords = ""
        var isCode = false
        for line in text.split(separator: "\n") {
            if line.hasPrefix(Self.otherWordsMark) { otherWords += line }
            if line.hasPrefix("```") { isCode.toggle() }
            guard !isCode, line.hasPrefix("#") else { continue }
            headings.append(line.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces))
        }
        self.headings = headings
        self.otherWords = otherWords.dropFirst(Self.otherWordsMark.count).split(separator: ",")
    }

    /// A page without the line of its other words; `nil` for a file that can't be read.
    static func text(of file: URL) -> String? {
        guard let text = try? String(contentsOf: file, encoding: .utf8) else { return nil }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.filter { !$0.hasPrefix(otherWordsMark) }.joined(separator: "\n")
    }

    /// Pages of the runbook first, then by name.
    static func < (left: HelpPage, right: HelpPage) -> Bool {
        left.isOfRunbook != right.isOfRunbook ? left.isOfRunbook : left.topic < right.topic
    }

    static func == (left: HelpPage, right: HelpPage) -> Bool { left.topic == right.topic }

    /// How often a word begins in the text as the wanted one does.
    func mentions(_ wanted: String) -> Int {
        let wanted = Array(wanted.utf8)
        guard let first = wanted.first, bytes.count >= wanted.count else { return 0 }
        var count = 0
        var isInside = false
        for index in 0...(bytes.count - wanted.count) {
            let byte = bytes[index]
            if !isInside, byte == first,
                bytes[index..<index + wanted.count].elementsEqual(wanted)
            {
                count += 1
            }
            isInside = (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte)
        }
        return count
    }
}
