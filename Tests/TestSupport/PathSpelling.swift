/// Other spellings of a path, such as servers, proxies and attackers write.
package enum PathSpelling {
    /// The path, changed so many times: each change is one that some server undoes. Every result
    /// has a single meaning as written.
    package static func changed(
        _ path: String,
        times count: Int,
        _ random: inout SeededGenerator
    ) -> String {
        var segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
            .map(String.init)
        for _ in 0..<count { change(&segments, &random) }
        return "/" + segments.joined(separator: "/")
    }

    private static func change(_ segments: inout [String], _ random: inout SeededGenerator) {
        let place = Int.random(in: segments.indices, using: &random)
        let last = segments.count - 1
        switch Int.random(in: 0..<12, using: &random) {
        case 0: segments[place] = segments[place].uppercased()
        case 1: segments[place] = capitalized(segments[place])
        case 2: segments.insert("", at: place)
        case 3: segments.append("")
        case 4: segments[place] += [";", ";x=1", "%3Bx"].randomElement(using: &random) ?? ";"
        case 5: segments.insert(contentsOf: ["", "host.example"], at: 0)
        case 6, 7: segments[place] = escaped(segments[place])
        case 8: segments[last] += [".json", ".x", "."].randomElement(using: &random) ?? "."
        case 9: segments.insert("index.php", at: 0)
        case 10:
            segments.append(["index.php", "index.html", "x"].randomElement(using: &random) ?? "")
        default:
            let mark = ["-", ".", "%21", "!", "~"].randomElement(using: &random) ?? "-"
            segments[place] = segments[place].replacing("_", with: mark)
        }
        // A segment of dots alone would be another path.
        for place in segments.indices where segments[place].allSatisfy({ $0 == "." }) {
            segments[place] = segments[place].isEmpty ? "" : "x"
        }
    }

    private static func capitalized(_ segment: String) -> String {
        segment.prefix(1).uppercased() + segment.dropFirst()
    }

    /// The segment with its first letter as an escape; as it is where it begins with another byte.
    private static func escaped(_ segment: String) -> String {
        guard let first = segment.utf8.first, let letter = segment.first, letter.isLetter,
            letter.isASCII
        else { return segment }
        return "%" + String(first, radix: 16, uppercase: true) + segment.dropFirst()
    }
}
