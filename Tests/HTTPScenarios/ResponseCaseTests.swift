import Testing

extension Scenarios {
    struct ResponseCaseTests {
        /// Cases that are judged otherwise here, each with its reason. One that comes out as
        /// expected fails too, so that the list stays true.
        static let divergences = [
            "own-rsp-fold": "obs-fold is answered 502, the other way of RFC 9112 §5.2 ¶4"
        ]

        @Test(arguments: [true, false])
        func `what an origin sends comes out as expected, in one write and octet by octet`(
            _ isWhole: Bool
        ) throws {
            // An unsolicited response is for the tests of the pool.
            let cases = HTTPCase.all.filter {
                $0.direction == "response" && $0.expect.action != "close-idle"
            }
            #expect(cases.count == 40, "Cases/cases.jsonl is incomplete")
            let stage = ResponseReplay.Stage()
            let bench = try Bench(script: stage.script)
            defer { bench.stop() }
            for one in cases {
                let replay = ResponseReplay(
                    one: one,
                    bench: bench,
                    stage: stage,
                    isWhole: isWhole
                )
                let fault = try replay.fault()
                let isListed = Self.divergences[one.id] != nil
                #expect((fault != nil) == isListed, "\(one.id): \(fault ?? "passes now")")
            }
        }
    }
}
