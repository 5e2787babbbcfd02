import Expectations
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    struct ResponseCaseTests {
        @Test(arguments: Delivery.allCases.filter { $0 != .pooled })
        func `what an origin sends comes out as expected, however it arrives`(
            _ delivery: Delivery
        ) throws {
            // An unsolicited response is for the tests of the pool.
            let cases = HTTPCase.all.filter {
                $0.direction == "response" && $0.expect.action != "close-idle"
            }
            expectEqual(cases.count, 40 + 247, "the files in Cases are incomplete")
            let stage = ResponseReplay.Stage()
            let bench = try Bench(isSecure: delivery == .tls, script: stage.script)
            defer { bench.stop() }
            for one in cases {
                let replay = ResponseReplay(
                    one: one,
                    bench: bench,
                    stage: stage,
                    delivery: delivery
                )
                let fault: String?
                do {
                    fault = try replay.fault()
                } catch {
                    fault = "\(error)"
                }
                // One that comes out as expected fails too, so that the list stays true.
                let isListed = HTTPCase.divergences[one.id] != nil
                let comment = "\(one.id) \(delivery): \(fault ?? "passes now")"
                expectEqual((fault != nil), isListed, "\(comment)")
            }
        }
    }
}
