import Foundation
import Testing

/// The exits that the comments of the states name.
enum Diagram {
    static func read() throws -> Set<Transcript.Step> {
        try read("RequestState.swift", "enum RequestState {", "\n}\n")
            .union(read("Leg.swift", "enum Phase: Equatable {", "\n    }\n"))
    }

    private static func read(
        _ name: String,
        _ states: String,
        _ ending: String
    ) throws -> Set<Transcript.Step> {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../Sources/proxy/Proxy/Requests/Flow/\(name)")
        let text = try String(contentsOf: file, encoding: .utf8)
        let start = try #require(text.range(of: states))
        let end = try #require(text.range(of: ending, range: start.upperBound..<text.endIndex))
        var steps: Set<Transcript.Step> = []
        var comment = ""
        for line in text[start.upperBound..<end.lowerBound].split(separator: "\n") {
            let line = line.trimmingCharacters(in: .whitespaces)
            if line.hasPrefix("///") {
                comment += line.dropFirst(3)
            } else if line.hasPrefix("case ") {
                let state = String(line.dropFirst(5).prefix { $0.isLetter })
                let exits = comment.components(separatedBy: "Leaves to").dropFirst().joined()
                let names = exits.split(separator: "`").enumerated()
                for (index, name) in names where index % 2 == 1 {
                    steps.insert(Transcript.Step(from: state, to: String(name)))
                }
                comment = ""
            }
        }
        return steps
    }
}
