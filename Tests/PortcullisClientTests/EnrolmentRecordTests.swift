import Expectations
import Foundation
import Testing

@testable import PortcullisClient

@Suite struct EnrolmentRecordTests {
    private static let grant = EnrolmentGrant(challenge: "c", context: Data([0, 255]), until: 9)
    private static let causes: [EnrolmentHold.Cause] = [
        .appleUnavailable, .serviceFailed(.invalidInput), .throttled, .gatewayUnavailable,
        .keysLost, .dailyCap, .contextUnfit, .refused(reason: "app-mismatch"),
    ]

    @Test(arguments: [
        EnrolmentRecord.Phase.none, .generated(keyID: "k", nil), .generated(keyID: "k", grant),
        .attested(keyID: "k", grant, object: Data([1, 2])), .enrolled(keyID: "k"),
    ])
    func `a record is read as it was written`(phase: EnrolmentRecord.Phase) throws {
        for cause in Self.causes {
            var record = EnrolmentRecord(gateway: "g")
            record.phase = phase
            record.lease = EnrolmentRecord.Lease(holder: "h", process: 7, until: 8)
            record.attestations = [1, 2]
            record.countedKey = "k"
            record.hasContext = true
            record.losses = [3]
            record.failures = 4
            record.deviceFailures = 2
            record.hold = EnrolmentHold(cause, until: Date(timeIntervalSince1970: 5))
            let bytes = try #require(record.bytes)
            expectEqual(EnrolmentRecord(bytes, gateway: "g"), record)
        }
    }

    @Test(arguments: [nil, "", "{", "[]", "{\"phase\":\"enrolled\"}", "\u{0}"])
    func `what can't be read counts as nothing`(text: String?) {
        let record = EnrolmentRecord(text.map { Data($0.utf8) }, gateway: "g")
        expectEqual(record, EnrolmentRecord(gateway: "g"))
    }

    @Test func `a later version's key is used on`() {
        let text = """
            {"version":9,"gateway":"g","phase":"enrolled","key_id":"k","attested_by":["moon"]}
            """
        let record = EnrolmentRecord(Data(text.utf8), gateway: "g")
        expectEqual(record.phase, .enrolled(keyID: "k"))
    }

    /// What is stored is input: another build, another app of the group or a fault may have made
    /// it.
    @Test(arguments: [Int.max, Int.min])
    func `a record with absurd numbers goes on, and ends no process`(failures: Int) {
        let text = """
            {"version":1,"gateway":"g","phase":"generated","key_id":"k",
            "failures":\(failures),
            "attestations":[1e308,-1e308],
            "losses":[\(String(repeating: "1,", count: 999))1],
            "lease":{"holder":"x","process":1,"until":1e308},
            "hold":{"cause":"throttled","until":1e308}}
            """
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        let record = EnrolmentRecord(Data(text.utf8), gateway: "g")
        #expect(record.losses.count < 100)
        #expect(!LeaseHolder().isKept(out: record.lease, now: now))
        var machine = EnrolmentMachine(record, limits: PortcullisLimits())
        expectEqual(machine.began(now: now), .askChallenge(keyID: "k"))
        for _ in 0..<2 {
            let down = EndpointFailure.unreachable(retryAfter: nil)
            _ = machine.challengeFailed(down, now: now, jitter: 0.5)
            let later = EndpointFailure.unreachable(retryAfter: 7)
            _ = machine.challengeFailed(later, now: now, jitter: 0.5)
        }
        let bytes = machine.record.bytes
        expectEqual(EnrolmentRecord(bytes, gateway: "g").phase, record.phase)
    }

    @Test func `another gateway's key is not used, but what is the device's goes on`() throws {
        var record = EnrolmentRecord(gateway: "https://staging.example")
        record.phase = .enrolled(keyID: "k")
        record.attestations = [1]
        record.deviceFailures = 2
        let other = EnrolmentRecord(record.bytes, gateway: "https://api.example")
        expectEqual(other.phase, .none)
        expectEqual(other.attestations, [1])
        #expect(other.isDeviceBroken)
    }
}
