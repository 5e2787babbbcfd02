import Foundation
import Testing

@testable import PortcullisClient

@Suite struct EnrolmentRecordTests {
    private static let grant = EnrolmentGrant(challenge: "c", context: Data([0, 255]), until: 9)
    private static let causes: [EnrolmentHold.Cause] = [
        .appleUnavailable, .serviceFailed(.invalidInput), .throttled, .gatewayUnavailable,
        .keysLost, .dailyCap, .refused(reason: "app-mismatch"),
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
            record.losses = [3]
            record.failures = 4
            record.hold = EnrolmentHold(cause, until: Date(timeIntervalSince1970: 5))
            let bytes = try #require(record.bytes)
            #expect(EnrolmentRecord(bytes, gateway: "g") == record)
        }
    }

    @Test(arguments: [nil, "", "{", "[]", "{\"phase\":\"enrolled\"}", "\u{0}"])
    func `what can't be read counts as nothing`(text: String?) {
        let record = EnrolmentRecord(text.map { Data($0.utf8) }, gateway: "g")
        #expect(record == EnrolmentRecord(gateway: "g"))
    }

    @Test func `a later version's key is used on`() {
        let text = """
            {"version":9,"gateway":"g","phase":"enrolled","key_id":"k","attested_by":["moon"]}
            """
        let record = EnrolmentRecord(Data(text.utf8), gateway: "g")
        #expect(record.phase == .enrolled(keyID: "k"))
    }

    @Test func `another gateway's key is not used, but Apple's count goes on`() throws {
        var record = EnrolmentRecord(gateway: "https://staging.example")
        record.phase = .enrolled(keyID: "k")
        record.attestations = [1]
        let other = EnrolmentRecord(record.bytes, gateway: "https://api.example")
        #expect(other.phase == .none)
        #expect(other.attestations == [1])
    }
}
