import Encodings
package import Rules

/// The words of a key that turns something on or off.
package enum OnOff: String, CaseIterable { case on, off }

/// Reads a mapping key by key, and reports keys that are not allowed.
package struct MappingReader: Placed {
    package let place: Problem.Place
    package let keyPath: String
    package let log: ProblemLog
    private var members: [String: SourceNode.Member]
    /// Whether `${NAME}` may stand in the texts that it reads.
    private var takesVariables = false

    /// `nil`, with a problem, when the node is no mapping. Keys that are not allowed are problems.
    package init?(_ node: SourceNode, _ keyPath: String, keys: [String], log: ProblemLog) {
        guard case .mapping(let members) = node.content else {
            let allowed =
                keys.isEmpty ? "a mapping" : "a mapping with \(keys.joined(separator: ", "))"
            log.error(node.place, keyPath, found: node.found, use: allowed)
            return nil
        }
        log.record?.mapping(keyPath, keys)
        place = node.place
        self.keyPath = keyPath
        self.log = log
        self.members = members.reduce(into: [:]) { $0[$1.key] = $1 }
        if log.places[keyPath] == nil { log.note(place, of: keyPath) }
        for member in members { log.note(member.place, of: path(member.key)) }
        guard !keys.isEmpty else { return }
        for member in members where !keys.contains(member.key) {
            let name = path(member.key)
            let use =
                ForeignKey.use(for: member.key, among: keys)
                ?? Suggestion.use(keys.joined(separator: ", "), for: member.key, among: keys)
            log.error(member.place, name, found: "an unknown key", use: use)
        }
    }

    /// Appends what the mapping says, whatever its comments, layout and order of keys.
    package func append(to out: inout [UInt8]) { SourceNode.append(members.values, to: &out) }

    package func path(_ key: String) -> String { keyPath.isEmpty ? key : "\(keyPath).\(key)" }

    /// The same place without any of its keys, for a reader to which none of them belongs.
    package var emptied: MappingReader {
        var reader = self
        reader.members = [:]
        return reader
    }

    /// The same for texts in which variables of the environment may stand: paths, addresses, names.
    package var takingVariables: MappingReader {
        var reader = self
        reader.takesVariables = true
        return reader
    }

    /// Whether the mapping has the key, with any value.
    package func has(_ key: String) -> Bool { members[key] != nil }

    /// The place of a key that is there; otherwise that of the mapping.
    package func place(of key: String) -> Problem.Place { members[key]?.place ?? place }

    /// A value that was made of a key's.
    package func located<Value>(_ key: String, _ value: Value) -> Located<Value> {
        Located(value: value, place: place(of: key), keyPath: path(key))
    }

    package func node(_ key: String) -> SourceNode? { members[key]?.value }

    /// A mapping inside this one; `nil`, with a problem where it is something else, when it is not
    /// there.
    package func inner(_ key: String, keys: [String]) -> MappingReader? {
        node(key).flatMap { MappingReader($0, path(key), keys: keys, log: log) }
    }

    /// Reports a problem with a key.
    package func error(_ key: String, found: String, use: String) {
        log.error(place(of: key), path(key), found: found, use: use)
    }

    package func warning(_ key: String, found: String, use: String) {
        log.warning(place(of: key), path(key), found: found, use: use)
    }

    /// Reports a missing mandatory key.
    package func require(_ key: String, use: String) {
        log.record?.demand(path(key))
        guard members[key] == nil else { return }
        log.error(place, path(key), found: "no such key", use: use)
    }

    /// A text that the closure understands.
    package func value<Value>(
        _ key: String,
        use: String,
        words: [String] = [],
        form: ReadingRecord.Form = .text,
        _ read: (String) -> Value?
    ) -> Located<Value>? {
        let text = ReadingRecord.Text(use: use, words: words, form: form)
        return node(key).flatMap { value(of: $0, path(key), as: text, read) }
    }

    /// A text that the closure understands, from a node that is not a key's value.
    package func value<Value>(
        of node: SourceNode,
        _ keyPath: String,
        as form: ReadingRecord.Text,
        _ read: (String) -> Value?
    ) -> Located<Value>? {
        let use = form.use
        log.record?.text(keyPath, takesVariables ? form.takingVariables : form)
        log.note(node.place, of: keyPath)
        guard case .text(let written) = node.content else {
            log.error(node.place, keyPath, found: node.found, use: use)
            return nil
        }
        let stated = Located(value: written, place: node.place, keyPath: keyPath)
        let text = log.text(of: stated, takesVariables: takesVariables) { read($0) != nil }
        guard let text else { return nil }
        guard let value = read(text) else {
            let whole = text == written ? "" : ", which is \(SourceNode.quoted(text))"
            let found = node.found + whole
            if let unit = Self.missingUnit(of: text, { read($0) != nil }) {
                log.error(stated, found: "\(found) without its unit", use: text + unit)
                return nil
            }
            let meant = Suggestion.use(use, for: text, among: form.words)
            log.error(stated, found: found, use: meant)
            return nil
        }
        return Located(value: value, place: node.place, keyPath: keyPath)
    }

    /// The unit that makes a number an allowed value. Sizes and times have several, which the
    /// allowed values name.
    private static func missingUnit(of text: String, _ isAllowed: (String) -> Bool) -> String? {
        guard (1...18).contains(text.utf8.count),
            text.utf8.allSatisfy({ ".0123456789".utf8.contains($0) })
        else { return nil }
        return ["%", "/s", "/m", "/d", "B/s"].first { isAllowed(text + $0) }
    }

    /// One of the words of an enumeration.
    package func word<Word>(_ key: String, _: Word.Type = Word.self) -> Located<Word>?
    where Word: RawRepresentable<String> & CaseIterable {
        let words = Word.allCases.map(\.rawValue)
        return value(key, use: words.joined(separator: " | "), words: words, Word.init(rawValue:))
    }

    package func flag(_ key: String) -> Located<Bool>? {
        value(key, use: "true | false", form: .flag) { ["true": true, "false": false][$0] }
    }

    /// A path that is not empty, in the file's spelling.
    package func filePath(_ key: String, use: String) -> Located<String>? {
        takingVariables.value(key, use: use) { $0.isEmpty ? nil : $0 }
    }

    package func integer(_ key: String, in range: ClosedRange<Int>) -> Located<Int>? {
        let use = "a number, \(range.lowerBound)…\(range.upperBound)"
        return value(key, use: use, form: .number(range)) { text in
            Int(digits: text).flatMap { range.contains($0) ? $0 : nil }
        }
    }

    /// A number 1…1000000 with a unit, or `off`.
    package func countOrOff(_ key: String, unit: String) -> Located<Int?>? {
        value(key, use: "off, or 1\(unit)…1000000\(unit)") { text -> Int?? in
            if text == "off" { return .some(nil) }
            guard text.hasSuffix(unit), let number = Int(digits: text.dropLast(unit.count)),
                (1...1_000_000).contains(number)
            else { return nil }
            return number
        }
    }

    package func bytes(_ key: String, in range: ClosedRange<ByteCount>) -> Located<ByteCount>? {
        let bounds = "\(range.lowerBound.text)…\(range.upperBound.text)"
        let use = "a size with its unit (B, KiB, MiB, GiB), \(bounds)"
        return value(key, use: use, form: .size) { text in
            ByteCount(text: text).flatMap { range.contains($0) ? $0 : nil }
        }
    }

    package func duration(_ key: String, in range: ClosedRange<Duration>) -> Located<Duration>? {
        let bounds = "\(range.lowerBound.settingText)…\(range.upperBound.settingText)"
        let use = "a time with its unit (ms, s, m, h, d), \(bounds)"
        return value(key, use: use, form: .duration) { text in
            Duration(setting: text).flatMap { range.contains($0) ? $0 : nil }
        }
    }

    /// A time in whole units, of a second or a day. What is left of it has no effect, which is a
    /// warning.
    package func count(_ key: String, of unit: Duration, in range: ClosedRange<Duration>)
        -> Located<Int64>?
    {
        guard let time = duration(key, in: range) else { return nil }
        let count = time.value.components.seconds / unit.components.seconds
        let counted = Duration.seconds(count * unit.components.seconds)
        if time.value != counted {
            let found = "\(time.value.settingText), of which \(counted.settingText) counts"
            let use = unit == .seconds(1) ? "whole seconds" : "whole days"
            log.warning(time, found: found, use: use)
        }
        return time.map { _ in count }
    }

    /// The elements of a list; a problem when the value is no list, or empty.
    package func list(_ key: String, of what: String) -> [(node: SourceNode, keyPath: String)]? {
        guard let node = node(key) else { return nil }
        guard case .list(let nodes) = node.content, !nodes.isEmpty else {
            var found = node.found
            if case .list = node.content { found = "an empty list" }
            log.error(node.place, path(key), found: found, use: "a list of \(what)")
            return nil
        }
        return nodes.enumerated().map { ($1, "\(path(key))[\($0)]") }
    }

    /// The texts of a list that the closure understands. A repeated text is a problem.
    package func list<Value: Hashable>(
        _ key: String,
        of what: String,
        words: [String] = [],
        _ read: (String) -> Value?
    ) -> [Located<Value>]? {
        guard let nodes = list(key, of: what) else { return nil }
        var seen: Set<Value> = []
        return nodes.compactMap { node, keyPath in
            let text = ReadingRecord.Text(use: what, words: words)
            let value = value(of: node, keyPath, as: text, read)
            guard let value else { return nil }
            guard seen.insert(value.value).inserted else {
                log.error(node.place, keyPath, found: "\(node.found) again", use: "it once")
                return nil
            }
            return value
        }
    }

    /// One text, or a list of texts.
    package func texts<Value: Hashable>(
        _ key: String,
        use: String,
        _ read: (String) -> Value?
    ) -> [Located<Value>]? {
        guard let node = node(key) else { return nil }
        if case .list = node.content { return list(key, of: use, read) }
        return value(key, use: use + ", or a list", read).map { [$0] }
    }
}

extension Duration {
    private static let units: [(name: String, milliseconds: Int64)] = [
        ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
    ]

    /// Reads `500ms`, `10s`, `5m`, `1h`, `7d`: a whole number and its unit, at most 1,000 years.
    package init?(setting text: String) {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard let count = Int(digits: digits), count <= 31_536_000_000_000,
            let unit = Self.units.first(where: { $0.name == text.dropFirst(digits.count) })
        else { return nil }
        let (product, overflow) = Int64(count).multipliedReportingOverflow(by: unit.milliseconds)
        guard !overflow, product <= 31_536_000_000_000 else { return nil }
        self = .milliseconds(product)
    }

    package static func days(_ count: Int64) -> Duration { .seconds(count * 86_400) }

    /// Whole milliseconds; no more than `Int64.max`.
    package var settingMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        return overflow ? .max : product + attoseconds / 1_000_000_000_000_000
    }

    /// The duration with the largest unit that divides it.
    package var settingText: String {
        let count = settingMilliseconds
        let unit = Self.units.last { count > 0 && count % $0.milliseconds == 0 } ?? Self.units[1]
        return "\(count / unit.milliseconds)\(unit.name)"
    }
}
