import Foundation

/// The vectors of a plan's matching that apps and gateway share: Tests/Vectors/plan/matching.json.
package struct MatchingVectors: Decodable {
    package struct Path: Decodable {
        package let pattern: String
        package let path: String
        package let matches: Bool
    }

    package struct Host: Decodable {
        package let pattern: String
        package let host: String
        package let matches: Bool
    }

    package struct Method: Decodable {
        package let pattern: [String]
        package let method: String
        package let matches: Bool
    }

    package let paths: [Path]
    package let hosts: [Host]
    package let methods: [Method]

    package static func load() throws -> MatchingVectors {
        let file = SoftwareVectorFiles.folder.appendingPathComponent("plan/matching.json")
        return try JSONDecoder().decode(MatchingVectors.self, from: Data(contentsOf: file))
    }
}
