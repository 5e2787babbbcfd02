import AppAttest
import AppleStandIn
import Cryptography
import DeviceKey
import Dispatch
import Encodings
import Expectations
import Foundation
import KeyStore
import SQLiteKeyStore
import SoftwareAuthenticator
import Synchronization
import Testing

extension Scenarios {
    /// The renewal of many keys in compressed time, with the gateway's own parts: the database, the
    /// renewer, the client for Apple, and a stand-in for Apple over TLS.
    @Suite(.ofApple) struct Campaigns {
        /// Keys; the environment asks for more, such as 10000. Of 300, four fifths are renewed in
        /// the first round, and a restart is in the middle of each round.
        private static let count =
            ProcessInfo.processInfo.environment["PORTCULLIS_CAMPAIGN_KEYS"].flatMap { Int($0) }
            ?? 300

        /// What was sent with a call.
        private struct Sent: Sendable {
            let at: Int64
            let isAnswered: Bool
            let publicKey: P256PublicKey
            let createdAt: Int64
            let notBefore: Int64?
            let expiresAt: Int64
        }

        private static func sent(_ call: CallLog.Call) throws -> Sent {
            let bytes = Base64.decode(call.body.span)
            let fields = try UnverifiedReceipt(bytes: try #require(bytes)).fields
            return Sent(
                at: call.at / 1_000,
                isAnswered: call.isAnswered,
                publicKey: try #require(fields.certificate.p256PublicKey),
                createdAt: fields.creationTime.seconds,
                notBefore: fields.notBefore?.seconds,
                expiresAt: try #require(fields.expirationTime).seconds
            )
        }

        private func read(_ calls: [CallLog.Call]) throws -> [Sent] {
            let parts = Mutex<[Int: [Sent]]>([:])
            DispatchQueue.concurrentPerform(iterations: 8) { part in
                let range = part * calls.count / 8..<(part + 1) * calls.count / 8
                let read = try? calls[range].map(Self.sent)
                parts.withLock { $0[part] = read }
            }
            let sent = parts.withLock { parts in (0..<8).flatMap { parts[$0] ?? [] } }
            try #require(sent.count == calls.count)
            return sent
        }

        @Test
        func `all receipts are renewed in their windows, at the rate, through three restarts`()
            throws
        {
            let campaign = try RenewalCampaign(Self.count)
            defer { campaign.end() }
            let day = RenewalCampaign.day
            // The first round takes 1,600 s with 10,000 keys. In its middle comes a restart at
            // once, then one that takes an hour. What was renewed before that hour, half of the
            // keys, is due a second time in as many seconds; the third is in the middle of those.
            try campaign.run(until: Int64(Self.count / 50), downTime: 0)
            try campaign.run(until: Int64(Self.count / 10), downTime: 3_600)
            try campaign.run(until: day + Int64(Self.count / 20), downTime: 60)
            try campaign.run(until: day + 3_600, downTime: 0)
            expectEqual(campaign.log.notices.withLock { $0 }, [])

            let calls = campaign.log.calls.withLock { $0 }
            expectRate(calls)
            let sent = try read(calls)
            // The window: from field 19 on and before field 21, and Apple had no objection.
            let early = sent.count { $0.at < $0.notBefore ?? .min }
            let late = sent.count { $0.at >= $0.expiresAt }
            #expect(early == 0 && late == 0)
            expectEqual(campaign.apple.calls.count, calls.count)
            #expect(campaign.apple.calls.statuses.allSatisfy { $0 == 200 })
            // A token serves for fifty minutes, in each of the four gateways.
            #expect((4...36).contains(campaign.apple.calls.tokens.count))

            let tries = Dictionary(grouping: sent, by: \.publicKey)
            expectEqual(tries.count, Self.count)
            // No receipt is sent twice, unless the gateway ended before the answer was there.
            for tries in tries.values {
                let told = tries.filter(\.isAnswered)
                expectEqual(Set(told.map(\.createdAt)).count, told.count)
            }
            #expect(sent.count { !$0.isAnswered } <= 4 * 8)
            // Many windows came a second time.
            let second = tries.values.count { $0.count(where: \.isAnswered) == 2 }
            #expect(second > Self.count / 20)
            try expectStored(campaign, tries)
            let busiest = Dictionary(grouping: calls) { $0.at / 1_000 }.values.map(\.count).max()
            print(
                """
                campaign: \(Self.count) keys, \(calls.count) calls by \(calls.last?.run ?? 0) \
                gateways, \(busiest ?? 0) in the busiest second at a rate of \
                \(RenewalCampaign.perSecond), \(early) before and \(late) behind their windows, \
                \(second) keys renewed twice
                """
            )
        }

        /// Calls keep the rate, restarts included, and none are saved up for later.
        private func expectRate(_ calls: [CallLog.Call]) {
            let rate = RenewalCampaign.perSecond
            let times = calls.map(\.at)
            let seconds = zip(times, times.dropFirst(rate)).map { $1 - $0 }
            #expect((seconds.min() ?? 0) >= 1_000)
            let bySecond = Dictionary(grouping: times) { $0 / 1_000 }
            expectEqual(bySecond.values.map(\.count).max(), rate)
            expectEqual(calls.last?.run, 4)
        }

        /// Each key has its newest receipt on disk with its metric, and a gateway that starts now
        /// knows it.
        private func expectStored(
            _ campaign: RenewalCampaign,
            _ tries: [P256PublicKey: [Sent]]
        ) throws {
            let keys = try KeyAdministration(path: campaign.path)
            defer { try? keys.close() }
            let records = try keys.scan(KeyFilter(), after: nil, limit: 2 * Self.count).records
            let stored = Dictionary(uniqueKeysWithValues: records.map { ($0.keyID, $0) })
            let table = try KeyTable(journal: try SQLiteKeyJournal(path: campaign.path))
            defer { try? table.close() }
            let all = campaign.keys
            let wrong = Mutex<[String]>([])
            DispatchQueue.concurrentPerform(iterations: 8) { part in
                for key in all[part * all.count / 8..<(part + 1) * all.count / 8] {
                    let told = tries[key.key.publicKey, default: []].filter(\.isAnswered)
                    let record = stored[key.key.keyID]
                    guard Self.isRight(key, record, table.find(key.key.keyID), told.last?.at)
                    else { return wrong.withLock { $0.append("\(key.key.keyID): \(told)") } }
                }
            }
            let found = wrong.withLock { $0 }
            #expect(found.isEmpty)
        }

        /// - `at`: when the last receipt was asked for that came.
        private static func isRight(
            _ key: RenewalCampaign.Key,
            _ record: KeyRecord?,
            _ finding: KeyTable.Finding,
            _ at: Int64?
        ) -> Bool {
            guard let record, let bytes = record.receipt, let at,
                let receipt = try? UnverifiedReceipt(bytes: bytes).fields,
                case .known(let known) = finding
            else { return false }
            let state = record.receiptState
            return receipt.riskMetric == key.metric && state.riskMetric == key.metric
                && known.risk.metric == UInt16(key.metric)
                && state.createdAt == receipt.creationTime.seconds
                && (at...at + 2).contains(receipt.creationTime.seconds)
                && state.outcome == .renewed && state.dueAt ?? 0 >= state.notBefore ?? .max
        }
    }
}
