import Expectations
import Testing

@testable import LoadGenerator

@Suite struct MixTests {
    @Test func `what is not said is good`() throws {
        let mix = try #require(Mix("replayed=3%,tampered=2.5%"))
        expectEqual(mix.share(of: .good), 945_000)
        expectEqual(mix.share(of: .replayed), 30_000)
        expectEqual(mix.share(of: .tampered), 25_000)
        expectEqual(mix.share(of: .stale), 0)
        expectEqual(mix.text, "good 94.5%, replayed 3%, tampered 2.5%")
    }

    @Test(arguments: [
        "", "replayed", "replayed=3", "replay=3%", "replayed=3%,replayed=1%", "good=90%",
        "replayed=60%,stale=50%", "replayed=3%,",
    ])
    func `what is no mix is refused`(text: String) {
        expectEqual(Mix(text), nil)
    }

    @Test func `each kind gets its share, in every run the same`() throws {
        let mix = try #require(Mix("missing=10%,replayed=20%,tampered=5%,stale=15%,unknown=1%"))
        var counts: [RequestKind: Int] = [:]
        for number in 0..<100_000 { counts[mix.kind(at: UInt64(number)), default: 0] += 1 }
        for kind in RequestKind.allCases {
            let expected = mix.share(of: kind) / 10
            #expect(abs(counts[kind, default: 0] - expected) < 400, "\(kind)")
        }
        expectEqual((0..<8).map { mix.kind(at: $0) }, (0..<8).map { mix.kind(at: $0) })
    }

    @Test func `without a mix all are good`() {
        #expect((0..<1_000).allSatisfy { Mix.allGood.kind(at: $0) == .good })
    }
}
