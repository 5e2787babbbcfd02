import Expectations
import RequestBinding
import Testing

@Suite struct SequenceNumberTests {
    private func read(_ text: String) -> UInt64? {
        let text = Array(text.utf8)
        return SequenceNumber(text: text.span)?.rawValue
    }

    @Test(arguments: [1, 9, 10, 1_000, 9_007_199_254_740_991] as [UInt64])
    func `a number is written and read as its decimal digits`(value: UInt64) throws {
        let number = try #require(SequenceNumber(value))
        expectEqual(number.text, "\(value)")
        expectEqual(read(number.text), value)
    }

    @Test(arguments: [
        "", "0", "00", "01", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x1", "a", "١",
        "9007199254740992", "9999999999999999", "10000000000000000", "18446744073709551617",
        String(repeating: "9", count: 1_000),
    ])
    func `no other text is a number`(text: String) { expectEqual(read(text), nil) }

    @Test func `0 and what is above the greatest number are none`() {
        expectEqual(SequenceNumber(0), nil)
        expectEqual(SequenceNumber(1 << 53), nil)
        expectEqual(SequenceNumber(.max), nil)
    }

    @Test func `numbers follow each other until the greatest`() {
        expectEqual(SequenceNumber.first.rawValue, 1)
        expectEqual(SequenceNumber.first.next?.rawValue, 2)
        expectEqual(SequenceNumber.max.rawValue, 9_007_199_254_740_991)
        expectEqual(SequenceNumber.max.next, nil)
        #expect(SequenceNumber.first < .max)
    }

    @Test func `the number stands in the line of the challenge, whatever the rule signs`() {
        let digest = [UInt8](repeating: 0, count: 32)
        for parts: SignedParts in [.all, [.method, .target, .body]] {
            let lines = RequestLines.clientData(
                parts,
                of: RequestLines.Request(
                    method: "POST",
                    target: "/v1/orders?dry=1",
                    digest: digest,
                    headers: [("idempotency-key", "7"), ("x-absent", nil)]
                ),
                sequence: .max
            )
            expectEqual(
                String(decoding: lines, as: UTF8.self),
                """
                portcullis-request-v1
                POST
                /v1/orders?dry=1
                sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:
                9007199254740991
                idempotency-key: 7
                x-absent

                """
            )
        }
    }
}
