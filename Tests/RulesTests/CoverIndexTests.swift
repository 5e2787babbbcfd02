import Expectations
import HTTPWire
import Rules
import TestSupport
import Testing

@Suite struct CoverIndexTests {
    /// A file of rules as people write them when there are many.
    enum Shape: String, CaseIterable, Sendable {
        /// One path each.
        case paths
        /// `/**` for one host each.
        case hosts
        /// `/**` for one suffix of hosts each, one below the other ten times.
        case suffixes
        /// One path, one method each. More methods than a gateway takes.
        case methods
        /// `/v1/*/n` and `/v1/n/*` in turn.
        case wildcards
        /// Each rule behind the one that takes it.
        case shadowed

        func match(_ number: Int) throws -> RouteMatch {
            func path(_ text: String) throws -> PathPattern { try PathPattern(text) }
            switch self {
            case .paths: return RouteMatch(methods: ["GET"], path: try path("/v1/r\(number)/**"))
            case .hosts:
                return RouteMatch(host: try #require(HostPattern(text: "h\(number).example.com")))
            case .suffixes:
                let below = (0..<10 - number % 10).map { "l\($0)." }.joined()
                let text = "*.\(below)h\(number / 10).example.com"
                return RouteMatch(host: try #require(HostPattern(text: text)))
            case .methods: return RouteMatch(methods: ["M\(number)"], path: try path("/a"))
            case .wildcards:
                let text = number.isMultiple(of: 2) ? "/v1/*/r\(number)" : "/v1/r\(number)/*"
                return RouteMatch(path: try path(text))
            case .shadowed: return RouteMatch(path: try path(number == 0 ? "/**" : "/r\(number)"))
            }
        }
    }

    private func steps(_ shape: Shape, _ count: Int) throws -> Int {
        var index = CoverIndex()
        for number in 0..<count {
            let first = index.add(try shape.match(number), number: number)
            expectEqual(first, shape == .shadowed && number > 0 ? 0 : nil)
        }
        return index.steps
    }

    @Test(arguments: Shape.allCases)
    func `twice the rules take about twice the steps`(shape: Shape) throws {
        let once = try steps(shape, 5_000)
        let twice = try steps(shape, 10_000)
        #expect(twice <= once * 22 / 10, "\(once), \(twice)")
        #expect(twice <= 10_000 * 16)
    }

    private static func path(_ random: inout SeededGenerator) throws -> PathPattern {
        let words = ["a", "b", "*", "*", "c;x", "%61"]
        var parts = (0..<Int.random(in: 0...3, using: &random)).map { _ in
            words.randomElement(using: &random) ?? "a"
        }
        if Bool.random(using: &random) { parts.append("**") }
        if parts.isEmpty { parts = [""] }
        return try PathPattern("/" + parts.joined(separator: "/"))
    }

    private static func match(_ random: inout SeededGenerator) throws -> RouteMatch {
        let hosts = ["*", "*", "a.b.c", "*.b.c", "*.c", "b.c", "x.a.b.c", "10.0.0.1"]
        let host = HostPattern(text: hosts.randomElement(using: &random) ?? "*") ?? .any
        let methods = ["GET", "HEAD", "POST", "PUT"].filter { _ in Bool.random(using: &random) }
        return RouteMatch(
            host: host,
            methods: methods.isEmpty ? nil : methods,
            path: try path(&random)
        )
    }

    @Test func `it finds what comparing each rule with all before it finds`() throws {
        var random = SeededGenerator(seed: 4)
        for _ in 0..<300 {
            var index = CoverIndex()
            var before: [RouteMatch] = []
            for number in 0..<40 {
                let match = try Self.match(&random)
                let expected = before.firstIndex { $0.covers(match) }
                expectEqual(index.add(match, number: number), expected, "\(before) \(match)")
                before.append(match)
            }
        }
    }

    @Test func `paths that two patterns share are found, with one of them`() throws {
        var random = SeededGenerator(seed: 5)
        for _ in 0..<300 {
            var index = OverlapIndex()
            let patterns = try (0..<20).map { _ in try Self.path(&random) }
            for (number, pattern) in patterns.enumerated() { index.add(pattern, number: number) }
            let asked = try Self.path(&random)
            let found = index.overlapping(asked, stepsMax: 10_000)
            #expect(!found.isCut)
            // The example has one interpretation, so that a path which is no example of both shows
            // it.
            let shared = patterns.indices.filter { number in
                let example = asked.example(sharedWith: patterns[number], one: "other")
                let view = view(example)
                let path = (0..<view.segmentCount).map { Array(view.bytes[view.segment($0)]) }
                return asked.matches(path) && patterns[number].matches(path)
            }
            expectEqual(found.numbers, shared)
        }
    }

    @Test func `a search for shared paths ends at its bound`() throws {
        var index = OverlapIndex()
        for number in 0..<1_000 { index.add(try PathPattern("/*/r\(number)"), number: number) }
        let found = index.overlapping(try PathPattern("/a/*"), stepsMax: 100)
        #expect(found.isCut)
        #expect(found.numbers.count < 100)
    }
}
