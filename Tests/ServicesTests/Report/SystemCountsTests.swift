import Encodings
import Expectations
import HTTPWire
import Rules
import Telemetry
import Testing
import Verification

@testable import Services

@Suite struct SystemCountsTests {
    private static let phone = ClaimedSystem(.apple, major: 26, minor: 1)

    private func counts(_ requests: [ReportedRequest]) -> SystemCounts {
        var counts = SystemCounts()
        for request in requests { counts.add(request) }
        return counts
    }

    private func cells(
        _ name: SystemCounts.Name,
        of counts: SystemCounts
    ) throws -> [SystemCounts.Cell] {
        try #require(counts.groups.first { $0.name == name }).cells
    }

    @Test func `each system has its verdicts, and what was refused of them`() throws {
        let counts = counts([
            .signed(1, system: Self.phone), .signed(2, system: Self.phone), .bare(3),
            .signed(4, .refuse(.signatureMismatch), system: Self.phone, isRefused: true),
            .signed(5, .refuse(.signatureMismatch), system: Self.phone),
        ])
        let cells = try cells(.claimed(Self.phone), of: counts)
        #expect(cells[.verified] == 2 && cells[.invalid] == 2 && cells.refused == 1)
        expectEqual(cells.reasons.map(\.reason), ["signature-mismatch"])
        try expectEqual(self.cells(.none, of: counts).total, 1)
    }

    @Test func `systems that strangers make up take neither memory nor the place of others`() throws
    {
        var counts = counts(
            (0..<2000).map { number in
                .bare(
                    1,
                    system: ClaimedSystem(
                        .ios,
                        major: UInt16(number % 999),
                        minor: UInt16(number / 999)
                    )
                )
            }
        )
        counts.add(.signed(1, system: Self.phone))
        expectEqual(counts.groups.count, SystemCounts.placesMax / 2 + 2)
        try expectEqual(cells(.claimed(Self.phone), of: counts).total, 1)
        expectEqual(counts.groups.reduce(0) { $0 + $1.cells.total }, 2001)
        for number in 0..<2000 {
            counts.add(
                .signed(
                    number,
                    system: ClaimedSystem(.macos, major: UInt16(number % 999), minor: 1)
                )
            )
        }
        #expect(counts.groups.count <= SystemCounts.placesMax + 2)
    }

    @Test func `cells are bounded whatever clients combine`() {
        var requests: [ReportedRequest] = []
        for refusal in Refusal.allCases {
            for number in 0..<60 {
                let system = ClaimedSystem(.ios, major: UInt16(number))
                requests.append(.signed(1, .refuse(refusal), system: system))
            }
        }
        let counts = counts(requests)
        #expect(counts.cells.count <= SystemCounts.cellsMax + Refusal.allCases.count)
        expectEqual(counts.groups.reduce(0) { $0 + $1.cells.total }, UInt64(requests.count))
    }

    @Test func `what another gateway reads says the same, and adds up`() throws {
        let counts = counts([
            .signed(1, system: Self.phone), .bare(2, system: ClaimedSystem(.android, major: 15)),
            .bare(3),
            .signed(4, .failure(.store), system: Self.phone, isRefused: true),
        ])
        var out = ByteWriter()
        counts.write(into: &out)
        var reader = ByteReader(out.bytes)
        var read = try SystemCounts(&reader)
        try reader.end()
        read.merge(counts)
        let cells = try cells(.claimed(Self.phone), of: read)
        #expect(cells.total == 4 && cells.refused == 2 && cells[.errors] == 2)
        expectEqual(read.groups.count, 3)
        for count in 0..<out.bytes.count {
            var cut = ByteReader(Array(out.bytes[..<count]))
            #expect(throws: ByteReader.Fault.self) { _ = try SystemCounts(&cut) }
        }
    }
}

/// Which rule refuses which system or build, over all rules.
@Suite struct ReportGroupsTests {
    private func report(_ rules: [String: [ReportedRequest]]) -> Report {
        var ledger = ReportLedger(startedAt: 0)
        ledger.add(
            rules.map { ReportCounts.Entry(rule: $0.key, counts: RuleCounts($0.value)) },
            at: 20
        )
        return Report(
            ledger,
            of: rules.keys.sorted().map {
                RuleFacts(id: $0, mode: "enforce", rollout: "100%", origin: "shop")
            },
            ReportScope(windows: [.hour]),
            at: (1_776_679_215, 1_776_679_235, 25)
        )
    }

    private var sample: Report {
        let new = ClaimedSystem(.apple, major: 26, minor: 1)
        return report([
            "orders": [
                .signed(1, version: "7", system: ClaimedSystem(.ios, major: 18, minor: 1)),
                .signed(2, .refuse(.signatureMismatch), system: new, isRefused: true),
                .signed(3, .refuse(.signatureMismatch), system: new, isRefused: true),
            ],
            "profile": [
                .signed(4, .refuse(.counterReplayed), version: "7", system: new), .bare(5),
                .bare(6, .refuse(.preflight)),
            ],
        ])
    }

    @Test func `the most refused system is first, with its rule and its reasons`() {
        let lines = sample.text(by: .os).split(separator: "\n").map(String.init)
        #expect(lines[0].contains("last hour") && lines[0].contains("claim"))
        expectEqual(
            Array(lines.dropFirst()),
            [
                "    system      rule     verified  missing  unsupported  invalid  errors  refused"
                    + "  reasons",
                "    apple 26.1  orders          0        0            0        2       0        2"
                    + "  signature-mismatch 2",
                "    apple 26.1  profile         0        0            0        1       0        0"
                    + "  counter-replayed 1",
                "    not known   profile         0        1            0        0       0        0"
                    + "  assertion-missing 1",
                "    ios 18.1    orders          1        0            0        0       0        0"
                    + "  ",
            ]
        )
    }

    @Test func `builds are grouped in the same way`() {
        let lines = sample.text(by: .build).split(separator: "\n")
        #expect(lines[1].hasPrefix("    build      rule"))
        #expect(lines[2].hasPrefix("    not known  orders") && lines[2].contains("  2  signature"))
        #expect(lines.contains { $0.hasPrefix("    7          profile") })
        #expect(report([:]).text(by: .build).hasSuffix("\nno requests were judged\n"))
    }

    @Test(arguments: [
        ("iOS 26.1", 2), ("apple", 2), ("ios", 3), ("macOS 26", 2), ("26.1", 2), ("26.10", 0),
        ("iPadOS 18.1", 1), ("not known", 1), ("android", 0),
    ])
    func `a filter shows the lines of one system`(only: String, count: Int) {
        let text = ReportGroupFilter(only).filtered(sample.text(by: .os))
        let rows = text.split(separator: "\n").dropFirst().filter { $0.hasPrefix("    ") }
        expectEqual(rows.dropFirst().count, count, "\(text)")
        expectEqual(text.hasSuffix("\nnothing of \(only)\n"), count == 0)
    }
}
