import Rules

/// A key of a section: where its value goes, and what it may be.
struct SettingRow<Section>: Sendable {
    typealias Path<Value> = any WritableKeyPath<Section, Value> & Sendable

    enum Form: Sendable {
        case count(Path<Int>, ClosedRange<Int>)
        case bytes(Path<Int>, ClosedRange<ByteCount>)
        case milliseconds(Path<UInt64>, ClosedRange<Duration>)
        case time(Path<Duration>, ClosedRange<Duration>)
        /// 1…1000000 with a unit, or `off`.
        case orOff(Path<Int?>, unit: String)
        /// Bytes a second, 0B/s…1GiB/s.
        case byteRate(Path<UInt64>)
        /// From 1 a second on.
        case perSecond(Path<Int>, of: String, max: Int)
    }

    let key: String
    let form: Form

    init(_ key: String, _ form: Form) {
        self.key = key
        self.form = form
    }

    /// Reads a section: what it does not say keeps its default.
    ///
    /// - first, last: keys that have no row.
    /// - Returns: the section; `nil` where it is absent, or no mapping.
    @discardableResult
    static func read(
        _ rows: [Self],
        after first: [String] = [],
        before last: [String] = [],
        of node: SourceNode?,
        _ keyPath: String,
        into section: inout Section,
        log: ProblemLog
    ) -> MappingReader? {
        let keys = first + rows.map(\.key) + last
        guard let node, let reader = MappingReader(node, keyPath, keys: keys, log: log) else {
            return nil
        }
        for row in rows { row.read(reader, into: &section) }
        return reader
    }

    /// Reads the key, where it is there.
    func read(_ reader: MappingReader, into section: inout Section) {
        func put<Value>(_ read: Located<Value>?, _ path: Path<Value>) {
            if let read { section[keyPath: path] = read.value }
        }
        switch form {
        case .count(let path, let range): put(reader.integer(key, in: range), path)
        case .bytes(let path, let range): put(reader.bytes(key, in: range)?.map(\.rawValue), path)
        case .milliseconds(let path, let range): put(reader.milliseconds(key, in: range), path)
        case .time(let path, let range): put(reader.duration(key, in: range), path)
        case .orOff(let path, let unit): put(reader.countOrOff(key, unit: unit), path)
        case .byteRate(let path): put(reader.byteRate(key), path)
        case .perSecond(let path, let what, let max):
            put(reader.rate(key, of: what, max: max), path)
        }
    }

    /// The value of a section, as a configuration writes it.
    func text(in section: Section) -> String {
        switch form {
        case .count(let path, _): "\(section[keyPath: path])"
        case .bytes(let path, _): ByteCount(section[keyPath: path]).text
        case .milliseconds(let path, _): Duration.milliseconds(section[keyPath: path]).settingText
        case .time(let path, _): section[keyPath: path].settingText
        case .orOff(let path, let unit): section[keyPath: path].map { "\($0)\(unit)" } ?? "off"
        case .byteRate(let path): ByteCount(Int(clamping: section[keyPath: path])).text + "/s"
        case .perSecond(let path, _, _): "\(section[keyPath: path])/s"
        }
    }
}

extension MappingReader {
    /// A time in whole milliseconds.
    func milliseconds(_ key: String, in range: ClosedRange<Duration>) -> Located<UInt64>? {
        duration(key, in: range)?.map { UInt64(clamping: $0.settingMilliseconds) }
    }

    /// A number a second, from 1/s on.
    func rate(_ key: String, of what: String, max: Int) -> Located<Int>? {
        value(key, use: "\(what), 1/s…\(max)/s") { text in
            let number = text.hasSuffix("/s") ? Self.digits(text.dropLast(2)) : nil
            return number.flatMap { (1...max).contains($0) ? $0 : nil }
        }
    }

    fileprivate func byteRate(_ key: String) -> Located<UInt64>? {
        value(key, use: "bytes a second, 0B/s…1GiB/s") { text in
            let size = text.hasSuffix("/s") ? ByteCount(text: text.dropLast(2)) : nil
            return size.flatMap { $0 <= .gibibytes(1) ? UInt64($0.rawValue) : nil }
        }
    }
}
