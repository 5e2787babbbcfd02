import AppAttest
import Cryptography
import DeviceKey
import Encodings
import Expectations
import Foundation
import KeyStore
import OutboundCalls
import SQLiteKeyStore
import SoftwareAuthenticator
import Synchronization
import TestSupport
import Testing

@testable import Parties

/// The renewal of receipts in a real store, by an Apple that answers as a test says.
@Suite struct ReceiptRenewerTests {
    /// What Apple answers to one key's receipt.
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let outcome: ReceiptState.Outcome?
        /// The label of the metric.
        let end: String
        let reply: @Sendable (SoftwareKey, UnixTime) -> CallReply

        init(
            _ name: String,
            _ outcome: ReceiptState.Outcome?,
            _ end: String,
            _ reply: @escaping @Sendable (SoftwareKey, UnixTime) -> CallReply
        ) {
            self.name = name
            self.outcome = outcome
            self.end = end
            self.reply = reply
        }

        var testDescription: String { name }

        static func status(
            _ status: Int,
            _ outcome: ReceiptState.Outcome?,
            _ end: String
        ) -> Row {
            Row("\(status)", outcome, end) { _, _ in
                .answered(status: status, retryAfter: nil, body: [])
            }
        }

        static func damaged(_ damage: ReceiptDamage) -> Row {
            Row(damage.rawValue, .invalid, damage.refusal.rawValue) { key, now in
                newer(key, now, damage)
            }
        }

        static func replaced(
            _ name: String,
            _ reason: ReceiptRefusal.Reason,
            _ fields: @escaping @Sendable (UnixTime) -> [UInt32: String?]
        ) -> Row {
            Row(name, .invalid, reason.rawValue) { key, now in
                answered(
                    key.receipt(
                        .refreshed(riskMetric: 5),
                        clientDataHash: [1],
                        at: now,
                        replacing: fields(now)
                    )
                )
            }
        }

        static let statuses: [Row] = [
            .status(304, .early, "early"), .status(400, .rejected, "rejected"),
            .status(403, .rejected, "rejected"), .status(404, .gone, "gone"),
            .status(401, nil, "outage"), .status(429, nil, "outage"),
            .status(500, nil, "outage"), .status(503, nil, "outage"),
            Row("not sent", nil, "outage") { _, _ in .unsent(.breakerOpen) },
            Row("no key", .noCredential, "no-credential") { _, _ in .unsent(.noCredential) },
            Row("no host", .noHost, "no-host") { _, _ in .unsent(.noHost) },
            Row("no answer", nil, "outage") { _, _ in .failed(.timeout) },
            Row("garbage", .invalid, "receipt-malformed") { _, _ in
                .answered(status: 200, retryAfter: nil, body: Array("<html>".utf8))
            },
            Row("nothing", .invalid, "receipt-malformed") { _, _ in
                .answered(status: 200, retryAfter: nil, body: [])
            },
        ]

        static let wrong: [Row] =
            ReceiptDamage.allCases.map(damaged) + [
                replaced("an attestation's", .kindMismatch) { _ in [6: "ATTEST"] },
                replaced("the other environment", .environmentMismatch) { _ in [7: "sandbox"] },
                replaced("older than the stored one", .notNewer) { now in
                    [12: now.advanced(bySeconds: -250).iso8601]
                },
                replaced("without a period", .periodImplausible) { _ in [19: String?.none] },
                replaced("without an end", .periodImplausible) { _ in [21: String?.none] },
            ]
    }

    static func answered(_ receipt: [UInt8]) -> CallReply {
        .answered(status: 200, retryAfter: nil, body: Base64.encode(receipt.span))
    }

    /// The receipt that Apple gives when all is well.
    static func newer(
        _ key: SoftwareKey,
        _ now: UnixTime,
        _ damage: ReceiptDamage? = nil,
        metric: UInt32 = 5
    ) -> CallReply {
        answered(
            key.receipt(
                .refreshed(riskMetric: metric),
                clientDataHash: [1],
                at: now,
                damage: damage
            )
        )
    }

    /// An Apple that answers at once.
    private final class ScriptedApple: AppleCalling {
        private let script: Mutex<@Sendable (AppleCall) -> CallReply>
        private let log = Mutex<[AppleCall]>([])

        init(_ script: @escaping @Sendable (AppleCall) -> CallReply) {
            self.script = Mutex(script)
        }

        var calls: [AppleCall] { log.withLock(\.self) }

        func answer(_ script: @escaping @Sendable (AppleCall) -> CallReply) {
            self.script.withLock { $0 = script }
        }

        func send(_ call: AppleCall, _ done: @escaping @Sendable (CallReply) -> Void) {
            log.withLock { $0.append(call) }
            done(script.withLock { $0 }(call))
        }
    }

    /// The receipts of a store, and what its other gateways were to read.
    private final class NotedReceipts: ReceiptStore {
        private let inner: any ReceiptStore
        private let rows = Mutex<[Int64]>([])

        init(_ inner: any ReceiptStore) { self.inner = inner }

        var announced: [Int64] { rows.withLock { $0 } }

        func forEachDue(
            at now: Int64,
            _ body: (DueReceipt) -> Void
        ) throws(JournalError) {
            try inner.forEachDue(at: now, body)
        }

        func forEachAsked(_ body: (DueReceipt) -> Void) throws(JournalError) {
            try inner.forEachAsked(body)
        }

        func receipt(ofRow row: Int64) throws(JournalError) -> KeptReceipt? {
            try inner.receipt(ofRow: row)
        }

        func census(at now: Int64) throws(JournalError) -> ReceiptCensus {
            try inner.census(at: now)
        }

        func announce(_ rows: [Int64]) throws(JournalError) {
            self.rows.withLock { $0 += rows }
        }
    }

    private final class Clock: Sendable {
        private let seconds = Atomic(Int64(1_800_000_000))

        var now: UnixTime { UnixTime(seconds: seconds.load(ordering: .relaxed)) }

        func step(_ count: Int64) { seconds.add(count, ordering: .relaxed) }
    }

    /// What did not come in time, and how tries have ended until then.
    private struct Missing: Error {
        let what: String
        let ends: String
    }

    /// A store with one key whose attestation was a minute ago, and a renewer.
    private final class Bench {
        private let folder: URL
        let database: String
        let clock = Clock()
        let key: SoftwareKey
        let attested: [UInt8]
        let table: KeyTable
        let apple: ScriptedApple
        let receipts: NotedReceipts
        let renewer: ReceiptRenewer
        private let settings: ReceiptRenewer.Settings

        init(_ reply: @escaping @Sendable (SoftwareKey, UnixTime) -> CallReply) throws {
            folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            database = folder.appending(path: "portcullis.db").path
            let made = clock.now.advanced(bySeconds: -60)
            let authority = SoftwareAuthority(seed: [1, 5], madeAt: made)
            let device = SoftwareDevice(
                authority: authority,
                appID: "ABCDE12345.com.example.shop",
                environment: .production,
                shape: .beforeTwentySeven
            )
            let key = device.makeKey()
            self.key = key
            attested = key.receipt(.attest, clientDataHash: [1], at: made)
            table = try KeyTable(journal: try SQLiteKeyJournal(path: database))
            var record = KeyRecord(
                keyID: key.keyID,
                appID: device.appID,
                environment: .production,
                publicKey: key.publicKey,
                enrolledAt: made.seconds
            )
            record.receipt = attested
            record.receiptState = ReceiptState(
                createdAt: made.seconds,
                expiresAt: made.seconds + 90 * 86_400
            )
            table.enrol(record) { _ in }
            try table.committer.flush()
            let clock = clock
            apple = ScriptedApple { _ in reply(key, clock.now) }
            var renewal = RenewalSettings()
            renewal.perSecond = 1_000
            settings = ReceiptRenewer.Settings(
                renewal: renewal,
                apps: [],
                teams: AppleTeams([]),
                roots: [authority.root]
            )
            receipts = NotedReceipts(try #require(try table.receiptStore()))
            let parts = ReceiptRenewer.Parts(
                keys: table,
                receipts: receipts,
                apple: apple,
                clock: RenewalClock { clock.now.seconds * 1_000 }
            )
            renewer = ReceiptRenewer(settings, parts) { _ in }
            clock.step(2)
            renewer.start()
        }

        func end() {
            renewer.end()
            try? table.close()
            try? FileManager.default.removeItem(at: folder)
        }

        /// Has the renewer look at the clock.
        func step(_ seconds: Int64) {
            clock.step(seconds)
            renewer.reload(settings)
        }

        func stored() throws -> KeyRecord {
            let keys = try KeyAdministration(path: database)
            defer { try? keys.close() }
            return try #require(try keys.record(key.keyID))
        }

        func ends(_ label: String) -> UInt64 {
            renewer.facts.sortedEnds.first { $0.end == label }?.count ?? 0
        }

        func wait(for what: String, _ isTrue: () throws -> Bool) throws {
            guard try eventually(isTrue) else {
                let ends = renewer.facts.sortedEnds
                throw Missing(what: what, ends: "\(ends)")
            }
        }

        var metric: UInt16? {
            if case .known(let key) = table.find(key.keyID) { key.risk.metric } else { nil }
        }
    }

    @Test func `a receipt is sent as it was stored, and the newer one takes its place`() throws {
        let bench = try Bench { Self.newer($0, $1) }
        defer { bench.end() }
        try bench.wait(for: "a renewal") { try bench.stored().receiptState.outcome == .renewed }
        expectEqual(bench.apple.calls.count, 1)
        let call = try #require(bench.apple.calls.first)
        expectEqual(call.service, .receipts)
        expectEqual(call.environment, .production)
        expectEqual(call.teamID, nil)
        let attested = bench.attested
        let sent = Base64.encode(attested.span)
        expectEqual(call.body, sent)
        let stored = try bench.stored()
        let receipt = try UnverifiedReceipt(bytes: try #require(stored.receipt))
        expectEqual(receipt.fields.kind, .receipt)
        expectEqual(stored.receiptState.riskMetric, 5)
        expectEqual(stored.receiptState.notBefore, receipt.fields.notBefore?.seconds)
        expectEqual(stored.receiptState.expiresAt, receipt.fields.expirationTime?.seconds)
        try bench.wait(for: "the metric") { bench.metric == 5 }
        try bench.wait(for: "the others") { bench.receipts.announced.count == 1 }
        // A week later the newer one is sent.
        let now = bench.clock
        let key = bench.key
        bench.apple.answer { _ in Self.newer(key, now.now, metric: 9) }
        bench.step(8 * 86_400)
        try bench.wait(for: "the second renewal") { bench.metric == 9 }
        expectEqual(bench.apple.calls.count, 2)
        let bytes = receipt.bytes
        let next = Base64.encode(bytes.span)
        expectEqual(bench.apple.calls.last?.body, next)
    }

    @Test(arguments: Row.statuses + Row.wrong)
    func `what is no newer receipt leaves the stored one, and is told apart`(row: Row) throws {
        let bench = try Bench(row.reply)
        defer { bench.end() }
        try bench.wait(for: row.end) { bench.ends(row.end) == 1 }
        if let outcome = row.outcome {
            try bench.wait(for: row.name) { try bench.stored().receiptState.outcome == outcome }
        }
        let stored = try bench.stored()
        expectEqual(stored.receipt, bench.attested)
        expectEqual(stored.receiptState.outcome, row.outcome)
        expectEqual((stored.receiptState.triedAt == nil), row.outcome == nil)
        expectEqual((stored.receiptState.dueAt == nil), row.outcome == .gone)
        expectEqual(bench.metric, nil)
        #expect(bench.receipts.announced.isEmpty)
        expectEqual(bench.apple.calls.count, 1)
    }

    @Test func `behind an outage the same key is tried again`() throws {
        let bench = try Bench { _, _ in .answered(status: 429, retryAfter: 600, body: []) }
        defer { bench.end() }
        try bench.wait(for: "an outage") { bench.ends("outage") == 1 }
        let (key, clock) = (bench.key, bench.clock)
        bench.apple.answer { _ in Self.newer(key, clock.now) }
        bench.step(599)
        expectEqual(bench.metric, nil)
        bench.step(2)
        try bench.wait(for: "the renewal") { bench.metric == 5 }
        expectEqual(bench.apple.calls.count, 2)
    }

    @Test func `a command has a receipt renewed at once, and a revoked key is left alone`()
        throws
    {
        let bench = try Bench { Self.newer($0, $1) }
        defer { bench.end() }
        try bench.wait(for: "a renewal") { bench.metric == 5 }
        let keys = try KeyAdministration(path: bench.database)
        let early = bench.clock.now.seconds
        guard case .tooEarly = try keys.askRenewal(of: bench.key.keyID, now: early) else {
            Issue.record("it is too early")
            return
        }
        let (key, clock) = (bench.key, bench.clock)
        bench.apple.answer { _ in Self.newer(key, clock.now, metric: 11) }
        clock.step(2 * 86_400)
        let now = clock.now.seconds
        try expectEqual(keys.askRenewal(of: key.keyID, now: now), .asked)
        try bench.wait(for: "the renewal that was asked for") { bench.metric == 11 }
        try expectEqual(keys.revoke(key.keyID, ChangeNote(now: now)), .revoked)
        bench.step(20 * 86_400)
        try bench.wait(for: "a look at the store") { bench.renewer.facts.due == 0 }
        expectEqual(bench.apple.calls.count, 2)
        try keys.close()
    }
}
