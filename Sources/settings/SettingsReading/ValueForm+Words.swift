import HTTPWire
package import Rules

// Values of one text: numbers with their units, times, words, paths.

extension ValueForm where Value == Int {
    package static func count(_ range: ClosedRange<Int>) -> ValueForm {
        ValueForm({ $0.integer($1, in: range) }, text: { "\($0)" })
    }

    /// A size, in bytes.
    package static func bytes(_ range: ClosedRange<ByteCount>) -> ValueForm {
        ValueForm({ $0.bytes($1, in: range)?.map(\.rawValue) }, text: { ByteCount($0).text })
    }

    /// From 1 a second on.
    package static func perSecond(of what: String, max: Int) -> ValueForm {
        ValueForm(
            { reader, key in
                reader.value(key, use: "\(what), 1/s…\(max)/s") { text in
                    let number = text.hasSuffix("/s") ? Int(digits: text.dropLast(2)) : nil
                    return number.flatMap { (1...max).contains($0) ? $0 : nil }
                }
            },
            text: { "\($0)/s" }
        )
    }

    /// `0%` to `100%`, without decimals.
    package static var percent: ValueForm {
        ValueForm(
            { reader, key in
                reader.value(key, use: "a whole percentage, 0%…100%") { text in
                    let number = text.hasSuffix("%") ? Int(digits: text.dropLast()) : nil
                    return number.flatMap { (0...100).contains($0) ? $0 : nil }
                }
            },
            text: { "\($0)%" }
        )
    }
}

extension ValueForm where Value == Int {
    /// A time in whole days. What is left of it has no effect, which is a warning.
    package static func days(_ range: ClosedRange<Int>) -> ValueForm {
        ValueForm(
            { reader, key in
                let least = Duration.days(Int64(range.lowerBound))
                let most = Duration.days(Int64(range.upperBound))
                return reader.count(key, of: .days(1), in: least...most)?.map { Int($0) }
            },
            text: { "\($0)d" }
        )
    }
}

extension ValueForm where Value == Int? {
    /// 1…1000000 with a unit, or `off`.
    package static func orOff(unit: String) -> ValueForm {
        ValueForm({ $0.countOrOff($1, unit: unit) }, text: { $0.map { "\($0)\(unit)" } ?? "off" })
    }
}

extension ValueForm where Value == UInt64 {
    /// A time in whole milliseconds.
    package static func milliseconds(_ range: ClosedRange<Duration>) -> ValueForm {
        ValueForm(
            { $0.duration($1, in: range)?.map { UInt64(clamping: $0.settingMilliseconds) } },
            text: { Duration.milliseconds($0).settingText }
        )
    }

    /// Bytes a second, 0B/s…1GiB/s.
    package static var byteRate: ValueForm {
        ValueForm(
            { reader, key in
                reader.value(key, use: "bytes a second, 0B/s…1GiB/s") { text in
                    let size = text.hasSuffix("/s") ? ByteCount(text: text.dropLast(2)) : nil
                    return size.flatMap { $0 <= .gibibytes(1) ? UInt64($0.rawValue) : nil }
                }
            },
            text: { ByteCount(Int(clamping: $0)).text + "/s" }
        )
    }
}

extension ValueForm where Value == Int64 {
    /// A time in seconds; less than a second of it does not count, without a word.
    package static func seconds(_ range: ClosedRange<Duration>) -> ValueForm {
        ValueForm(
            { $0.duration($1, in: range)?.map(\.components.seconds) },
            text: { Duration.seconds($0).settingText }
        )
    }
}

extension ValueForm where Value == Int64 {
    /// A time in whole seconds. What is left of it has no effect, which is a warning.
    package static func wholeSeconds(_ range: ClosedRange<Duration>) -> ValueForm {
        ValueForm(
            { $0.count($1, of: .seconds(1), in: range) },
            text: { Duration.seconds($0).settingText }
        )
    }
}

extension ValueForm where Value == ByteCount {
    package static func size(_ range: ClosedRange<ByteCount>) -> ValueForm {
        ValueForm({ $0.bytes($1, in: range) }, text: { $0.text })
    }
}

extension ValueForm where Value == Duration {
    package static func time(_ range: ClosedRange<Duration>) -> ValueForm {
        ValueForm({ $0.duration($1, in: range) }, text: { $0.settingText })
    }
}

extension ValueForm where Value == Bool {
    /// `true` or `false`.
    package static var flag: ValueForm { ValueForm({ $0.flag($1) }, text: { "\($0)" }) }

    /// `on` or `off`.
    package static var onOff: ValueForm {
        ValueForm(
            { $0.word($1, OnOff.self)?.map { $0 == .on } },
            text: { ($0 ? OnOff.on : .off).rawValue }
        )
    }
}

extension ValueForm where Value: RawRepresentable<String> & CaseIterable & Equatable & Sendable {
    /// One of the words of an enumeration.
    package static var word: ValueForm {
        ValueForm({ $0.word($1, Value.self) }, text: { $0.rawValue })
    }
}

extension ValueForm where Value == String {
    /// A text that the closure understands.
    package static func text(
        _ use: String,
        _ read: @escaping @Sendable (String) -> String?
    ) -> ValueForm {
        ValueForm({ $0.value($1, use: use, read) }, text: { $0.isEmpty ? nil : $0 })
    }

    /// An address or a name that the closure understands; `${NAME}` may stand in it.
    package static func name(
        _ use: String,
        _ read: @escaping @Sendable (String) -> String?
    ) -> ValueForm {
        text(use, read).takingVariables
    }

    /// A path that is not empty, in the file's spelling.
    package static func file(_ use: String) -> ValueForm { name(use) { $0.isEmpty ? nil : $0 } }

    /// A path that is not empty. Unless it is absolute, it counts from the configuration's folder.
    package static func path(_ use: String) -> ValueForm {
        ValueForm(
            { reader, key in
                reader.filePath(key, use: use)?.map { FilePath.joined(reader.log.folder, $0) }
            },
            text: { $0.isEmpty ? nil : $0 }
        )
    }
}
