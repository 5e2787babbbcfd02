import Expectations
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    struct RequestCaseTests {
        /// Cases that are judged otherwise here, each with its reason. One that comes out as
        /// expected fails too, so that the list stays true.
        static let divergences = HTTPCase.divergences.merging([
            "own-conn-15": "the gateway asks for trailers itself, which it passes on (row 53)",
            "own-conn-16": "as own-conn-15",
            "own-mth-05": "RFC 9110 §7.6.2: with Max-Forwards 0 the request is answered here",
        ]) { $1 }

        @Test(arguments: Delivery.allCases)
        func `the origin sees exactly the requests of a case, and the client is told`(
            _ delivery: Delivery
        ) throws {
            let cases = HTTPCase.all.filter { $0.direction == "request" && $0.category != "slow" }
            expectEqual(HTTPCase.given.count, 582, "Cases/cases.jsonl is incomplete")
            expectEqual(HTTPCase.more.count, 1538, "Cases/more-cases.jsonl is incomplete")
            expectEqual(cases.count, 532 + 1291)
            let more = delivery == .pooled ? "" : "limits: { pooled: 0 }"
            let faults = try Bench.play(cases) {
                try Bench(isSecure: delivery == .tls, more: more)
            } _: { one, bench in
                var replay = RequestReplay(one, bench, delivery)
                return try replay.fault()
            }
            for one in cases {
                let isListed = Self.divergences[one.id] != nil
                if let fault = faults[one.id] {
                    if !isListed { Issue.record("\(one.id) \(delivery): \(fault)") }
                } else if isListed {
                    Issue.record("\(one.id) \(delivery) passes now; take it off the list")
                }
            }
        }
    }
}
