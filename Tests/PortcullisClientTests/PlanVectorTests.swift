import Foundation
import Testing

@testable import PortcullisClient

/// The gateway's own matching, in vectors that its tests read too.
@Suite struct PlanVectorTests {
    private struct Vectors: Decodable {
        struct Path: Decodable {
            let pattern: String
            let path: String
            let matches: Bool
        }

        struct Host: Decodable {
            let pattern: String
            let host: String
            let matches: Bool
        }

        let paths: [Path]
        let hosts: [Host]
    }

    private let vectors: Vectors

    init() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../Vectors/plan/matching.json").standardized
        vectors = try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file))
    }

    @Test func `paths match as the gateway matches them`() {
        #expect(vectors.paths.count > 20)
        for vector in vectors.paths {
            let place = RequestPlace(host: "h", path: vector.path)
            let matches = PlanPath(vector.pattern).matches(place.segments)
            #expect(matches == vector.matches, "\(vector.pattern) \(vector.path)")
        }
    }

    @Test func `hosts match as the gateway matches them`() {
        #expect(vectors.hosts.count > 10)
        for vector in vectors.hosts {
            let place = RequestPlace(host: vector.host, path: "/")
            let pattern = RequestPlace.host(vector.pattern)
            let matches = PlanRule.takes(host: place.host, pattern)
            #expect(matches == vector.matches, "\(vector.pattern) \(vector.host)")
        }
    }
}
