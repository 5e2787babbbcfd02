import AppAttest
import AppleStandIn
import ConfigurationReading
import Cryptography
import DeviceKey
import Foundation
import KeyStore
import LoopbackKit
import SQLiteKeyStore
import SoftwareAuthenticator
import Synchronization
import TestSupport
import Testing

@testable import Gateway
@testable import Parties

/// Many keys with genuine receipts in a database, and a stand-in for Apple that knows them. Time is
/// compressed; all else is what a gateway has.
final class RenewalCampaign {
    struct Key: Sendable {
        let key: SoftwareKey
        let metric: UInt32
        let record: KeyRecord
    }

    static let day: Int64 = 86_400
    static let perSecond = 5

    let scenario: Scenario
    let keys: [Key]
    let time: CompressedTime
    let apple: StandInServer
    let log = CallLog()
    /// When it begins, seconds since 1970.
    let start: Int64
    private let authority: SoftwareAuthority
    private let settings: AppleSettings

    /// Keys that were attested in the last ninety days, and a fifth of them whose receipts were
    /// renewed in the last day, so that no newer ones are to be had yet.
    init(_ count: Int) throws {
        scenario = try Scenario()
        let start = Scenario.now.seconds
        self.start = start
        let time = CompressedTime(at: start * 1_000)
        self.time = time
        apple = try StandInServer(folder: scenario.folder.path) {
            UnixTime(seconds: time.now / 1_000)
        }
        authority = SoftwareAuthority(
            seed: [1, 5],
            madeAt: UnixTime(seconds: start - 90 * Self.day)
        )
        let device = SoftwareDevice(
            authority: authority,
            appID: Scenario.appID,
            environment: .production,
            shape: .beforeTwentySeven
        )
        let parts = Mutex<[Int: [Key]]>([:])
        let partCount = 8
        DispatchQueue.concurrentPerform(iterations: partCount) { part in
            var random = SeededGenerator(seed: UInt64(part))
            let numbers = part * count / partCount..<(part + 1) * count / partCount
            let made = numbers.map { Self.key($0, of: device, start, &random) }
            parts.withLock { $0[part] = made }
        }
        keys = parts.withLock { parts in (0..<partCount).flatMap { parts[$0] ?? [] } }
        let team = StandInTeam()
        apple.add(team)
        for key in keys { apple.add(key.key, riskMetric: key.metric) }
        var settings = AppleSettings()
        settings.credentials = [
            try AppleCredential(teamID: team.teamID, keyID: team.keyID, pem: team.p8)
        ]
        for (host, port) in apple.ports { settings.hosts[host] = "https://localhost:\(port)" }
        settings.roots = Array(try Data(contentsOf: URL(filePath: apple.rootFile)))
        settings.perSecond = 1_000
        settings.receipts.perSecond = Self.perSecond
        settings.receipts.every = .seconds(Self.day)
        self.settings = settings
        try store()
    }

    func end() {
        apple.stop()
        scenario.end()
    }

    private static func key(
        _ number: Int,
        of device: SoftwareDevice,
        _ start: Int64,
        _ random: inout SeededGenerator
    ) -> Key {
        let key = device.makeKey()
        let isRenewed = number.isMultiple(of: 5)
        let age = Int64.random(in: 600..<(isRenewed ? day * 5 / 6 : 90 * day), using: &random)
        let made = UnixTime(seconds: start - age)
        let metric = UInt32(number % 17 + 1)
        let kind = isRenewed ? ReceiptKind.refreshed(riskMetric: 99) : .attest
        var state = ReceiptState(createdAt: made.seconds, expiresAt: made.seconds + 90 * day)
        if isRenewed {
            state.notBefore = made.seconds + day
            state.dueAt = made.seconds + day
            (state.riskMetric, state.metricAt) = (99, made.seconds)
            (state.triedAt, state.outcome) = (made.seconds, .renewed)
        }
        var record = KeyRecord(
            keyID: key.keyID,
            appID: device.appID,
            environment: .production,
            publicKey: key.publicKey,
            enrolledAt: made.seconds
        )
        record.receipt = key.receipt(kind, clientDataHash: [1], at: made)
        record.receiptState = state
        record.lastUsedAt = Int64.random(in: made.seconds...start, using: &random)
        return Key(key: key, metric: metric, record: record)
    }

    var path: String { scenario.path("portcullis.db") }

    private func store() throws {
        let table = try KeyTable(journal: try SQLiteKeyJournal(path: path))
        for (number, key) in keys.enumerated() {
            table.enrol(key.record) { _ in }
            if number.isMultiple(of: 1_000) { try table.committer.flush() }
        }
        try table.close()
    }

    /// A gateway runs until this moment, then ends.
    ///
    /// - `seconds`: since the campaign began.
    /// - `downTime`: seconds that pass before the next one can start.
    func run(until seconds: Int64, downTime: Int64) throws {
        let table = try KeyTable(journal: try SQLiteKeyJournal(path: path))
        let time = time
        let apple = AppleClient(named: "apple", settings, over: HTTPSCalls()) { time.now }
        log.runs.withLock { $0 += 1 }
        let renewer = ReceiptRenewer(
            ReceiptRenewer.Settings(
                renewal: settings.receipts,
                apps: [],
                teams: AppleTeams([]),
                roots: [authority.root]
            ),
            ReceiptRenewer.Parts(
                keys: table,
                receipts: try #require(try table.receiptStore()),
                apple: WatchedApple(apple, time, log),
                clock: time.clock
            )
        ) { [log] notice in
            log.notices.withLock { $0.append("\(notice)") }
        }
        renewer.start()
        // In steps, since the disk is as fast as it is: no more waits for it than may wait.
        var moment = time.now
        let end = (start + seconds) * 1_000
        while moment < end {
            moment = min(moment + 60_000, end)
            try time.run(until: moment, on: renewer.queue)
            if table.committer.statistics.depth > 0 { try table.committer.flush() }
        }
        renewer.end()
        try time.pass(downTime * 1_000)
        let ended = DispatchSemaphore(value: 0)
        apple.stop { ended.signal() }
        ended.wait()
        try table.close()
    }
}
