import Expectations
import TestSupport
import Testing

@testable import PortcullisClient

/// The gateway's own matching, in vectors that its tests read too.
@Suite struct PlanVectorTests {
    private let vectors: MatchingVectors

    init() throws { vectors = try .load() }

    @Test func `paths match as the gateway matches them`() {
        #expect(vectors.paths.count > 20)
        for vector in vectors.paths {
            let place = RequestPlace(host: "h", path: vector.path)
            let matches = PlanPath(vector.pattern).matches(place.segments)
            expectEqual(matches, vector.matches, "\(vector.pattern) \(vector.path)")
        }
    }

    @Test func `hosts match as the gateway matches them`() {
        #expect(vectors.hosts.count > 10)
        for vector in vectors.hosts {
            let place = RequestPlace(host: vector.host, path: "/")
            let pattern = RequestPlace.host(vector.pattern)
            let matches = PlanRule.takes(host: place.host, pattern)
            expectEqual(matches, vector.matches, "\(vector.pattern) \(vector.host)")
        }
    }
}
