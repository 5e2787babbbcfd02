package import Encodings

/// The gateways of a fleet that have a part in an answer to operators.
package struct ToldGateways: Sendable {
    /// What is known of a gateway.
    package enum Standing: Equatable, Sendable {
        case answered
        /// It has not answered, and what it said before counts: the age in seconds.
        case lastSaid(Int64, hasEnded: Bool)
        /// Nothing of it is in the answer.
        case unheard
    }

    package struct Entry: Equatable, Sendable {
        package let name: String
        package let standing: Standing

        package init(_ name: String, _ standing: Standing) {
            (self.name, self.standing) = (name, standing)
        }
    }

    package let entries: [Entry]
    /// The database does not answer, so nothing is known of the other gateways.
    package let isAlone: Bool

    package init(_ entries: [Entry], isAlone: Bool = false) {
        (self.entries, self.isAlone) = (entries, isAlone)
    }

    /// One line for each, for people; none for gateways that have answered.
    package var remarks: [String] {
        let alone =
            isAlone
            ? ["the fleet's database does not answer: this is what this gateway alone has seen"]
            : []
        return alone
            + entries.compactMap { entry in
                switch entry.standing {
                case .answered: nil
                case .lastSaid(let age, let hasEnded):
                    "\(entry.name) has \(hasEnded ? "ended" : "not answered"): what it said "
                        + "\(age) s ago counts"
                case .unheard: "\(entry.name) has not answered, and nothing of it is counted"
                }
            }
    }

    /// Member names are API: add, do not rename.
    func write(into out: inout JSONWriter) {
        out.objects("gateways", of: entries) { out, entry in
            out.member("name", entry.name)
            out.member("answered", entry.standing == .answered)
            switch entry.standing {
            case .answered: out.member("age_seconds", 0)
            case .lastSaid(let age, _): out.member("age_seconds", age)
            case .unheard: out.member("age_seconds", .null)
            }
        }
        if isAlone { out.member("alone", true) }
    }
}

// What a gateway tells the others that ask for its report.
extension Report {
    /// The number of the form, which the first byte has.
    private static let form: UInt8 = 2
    /// The most bytes of a form; rules beyond them are left out.
    package static let toldBytesMax = 512 << 10
    private static let idMax = 256
    private static let markMax = 1024
    /// A clock that differs by less than this counts as right: 5 s.
    private static let clockMax: Int64 = 5

    /// The report, with all windows, in at most ``toldBytesMax`` bytes.
    package var told: [UInt8] {
        var out = ByteWriter()
        out.byte(Self.form)
        out.number(startedAt)
        out.number(now)
        out.short(UInt64(marks.count))
        for mark in marks {
            out.number(mark.at)
            out.text(mark.kind.rawValue)
            out.text(String(mark.text.prefix(Self.markMax / 4)))
        }
        var omitted = self.omitted
        for entry in entries {
            var rule = ByteWriter()
            entry.write(into: &rule)
            guard out.bytes.count + rule.bytes.count < Self.toldBytesMax - 64 else {
                omitted += 1
                continue
            }
            out.flag(true)
            out.block(rule.bytes)
        }
        out.flag(false)
        out.short(UInt64(omitted))
        return out.bytes
    }

    /// - told: ``told`` of another gateway.
    package init(told: [UInt8]) throws(ByteReader.Fault) {
        var reader = ByteReader(told)
        guard try reader.byte() == Self.form else { throw ByteReader.Fault() }
        let startedAt = try reader.time()
        let now = try reader.time()
        var marks: [Mark] = []
        for _ in 0..<(try reader.short(max: UInt64(Mark.countMax))) {
            let at = try reader.time()
            let kind = try reader.text(max: 64)
            let text = try reader.text(max: Self.markMax)
            if let kind = Mark.Kind(rawValue: kind) { marks.append(Mark(kind, at: at, text)) }
        }
        var entries: [Entry] = []
        while try reader.flag() {
            var rule = ByteReader(try reader.block())
            entries.append(try Entry(&rule, idMax: Self.idMax))
            try rule.end()
        }
        self.init(startedAt: startedAt, now: now, entries: entries, marks: marks)
        omitted = Int(clamping: try reader.count())
        try reader.end()
    }

    /// The same by the clock of another gateway.
    ///
    /// - age: seconds since it was told.
    private func moved(to now: Int64, age: Int64) -> Report {
        let offset = now - age - self.now
        guard abs(offset) > Self.clockMax else { return self }
        var moved = Report(
            startedAt: startedAt + offset,
            now: now,
            entries: entries.map { $0.moved(by: offset) },
            marks: marks.map { Mark($0.kind, at: $0.at + offset, $0.text) }
        )
        moved.omitted = omitted
        return moved
    }

    /// What gateways have counted together.
    ///
    /// - own: the report of this gateway, whose rules the answer has.
    /// - isCounted: whether the counts of this gateway are part of it.
    /// - others: the reports of other gateways, each with the seconds since it was told.
    package init(
        _ own: Report,
        isCounted: Bool,
        others: [(report: Report, age: Int64)],
        _ scope: ReportScope,
        of gateways: ToldGateways
    ) {
        var all: [(report: Report, age: Int64)] = []
        if isCounted { all.append((own, 0)) }
        all += others.map { ($0.report.moved(to: own.now, age: $0.age), $0.age) }
        let served = own.entries.map(\.id)
        let told = Set(all.flatMap { $0.report.entries.map(\.id) })
        var entries: [Entry] = []
        for id in served + told.subtracting(served).sorted() {
            guard scope.rule == nil || scope.rule == id else { continue }
            let parts = all.compactMap { report, age in
                report.entries.first { $0.id == id }.map { (entry: $0, age: age) }
            }
            let facts = own.entries.first { $0.id == id }?.facts
            entries.append(Entry(id, facts, of: parts, over: scope.windows))
        }
        var marks: [Mark] = []
        for mark in all.flatMap(\.report.marks).sorted(by: { $0.at < $1.at }) {
            if !marks.contains(mark) { marks.append(mark) }
        }
        self.init(
            startedAt: all.map(\.report.startedAt).min() ?? own.startedAt,
            now: own.now,
            entries: entries,
            marks: marks.suffix(Mark.countMax)
        )
        omitted = all.reduce(0) { $0 + $1.report.omitted }
        self.gateways = gateways
    }
}

extension Report.Entry {
    /// The most points of a series.
    private static let pointsMax: UInt64 = 256

    /// - parts: what gateways have counted, with its age in seconds.
    fileprivate init(
        _ id: String,
        _ facts: RuleFacts?,
        of parts: [(entry: Report.Entry, age: Int64)],
        over windows: [ReportWindow]
    ) {
        self.id = id
        self.facts = facts
        self.parts = windows.map { window in
            var counts = RuleCounts()
            var seconds: Int64 = 0
            // What was told before the window began is out of it.
            for (entry, age) in parts where age < window.seconds {
                guard let part = entry.parts.first(where: { $0.window == window }) else { continue }
                counts.merge(part.counts)
                seconds = max(seconds, part.seconds)
            }
            return Report.Part(window: window, seconds: seconds, counts: counts)
        }
        series = windows.map { window in
            let length = window.series.slotSeconds
            var points: [Int64: SeriesPoint] = [:]
            for (at, point) in parts.flatMap({ $0.entry.series(of: length) }) {
                // Slots of another machine begin at another second.
                points[at - (at % length + length) % length, default: SeriesPoint()].merge(point)
            }
            return Report.Series(
                slotSeconds: length,
                points: points.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
            )
        }
    }

    private func series(of length: Int64) -> [(at: Int64, point: SeriesPoint)] {
        series.first { $0.slotSeconds == length }?.points ?? []
    }

    fileprivate func moved(by offset: Int64) -> Report.Entry {
        Report.Entry(
            id: id,
            facts: facts,
            parts: parts,
            series: series.map { series in
                Report.Series(
                    slotSeconds: series.slotSeconds,
                    points: series.points.map { ($0.at + offset, $0.point) }
                )
            }
        )
    }

    fileprivate func write(into out: inout ByteWriter) {
        out.text(id)
        for window in ReportWindow.allCases {
            let part = parts.first { $0.window == window }
            out.number(part?.seconds ?? 0)
            (part?.counts ?? RuleCounts()).write(into: &out)
            let points = series(of: window.series.slotSeconds).suffix(Int(Self.pointsMax))
            out.short(UInt64(points.count))
            for (at, point) in points {
                out.number(at)
                point.write(into: &out)
            }
        }
    }

    fileprivate init(_ reader: inout ByteReader, idMax: Int) throws(ByteReader.Fault) {
        let id = try reader.text(max: idMax)
        var parts: [Report.Part] = []
        var series: [Report.Series] = []
        for window in ReportWindow.allCases {
            let seconds = try reader.time()
            let counts = try RuleCounts(&reader)
            parts.append(Report.Part(window: window, seconds: seconds, counts: counts))
            var points: [(at: Int64, point: SeriesPoint)] = []
            for _ in 0..<(try reader.short(max: Self.pointsMax)) {
                let at = try reader.time()
                points.append((at, try SeriesPoint(&reader)))
            }
            series.append(Report.Series(slotSeconds: window.series.slotSeconds, points: points))
        }
        self.init(id: id, facts: nil, parts: parts, series: series)
    }
}

// What no gateway can have counted is a fault, so that sums and differences of what is read have
// room.
extension ByteReader {
    /// Seconds: below 2^40, some 35,000 years.
    fileprivate mutating func time() throws(Fault) -> Int64 {
        let time = try number()
        guard (0..<(1 << 40)).contains(time) else { throw Fault() }
        return time
    }

    /// A count, or a sum of nanoseconds: at most 2^55, so that those of 256 gateways have room.
    mutating func count() throws(Fault) -> UInt64 { UInt64(try short(max: 1 << 55)) }
}
