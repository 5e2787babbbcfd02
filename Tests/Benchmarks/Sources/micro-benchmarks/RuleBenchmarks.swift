import HTTPWire
import Rules

/// Which rule a request meets, with few rules and with many.
enum RuleBenchmarks {
    static var all: [() -> [Benchmark]] { [path, { matching(10) }, { matching(1_000) }] }

    private static func path() -> [Benchmark] {
        let bytes = Array(HTTPBenchmarks.browser.utf8)
        var head = RequestHead()
        _ = HTTPBenchmarks.read(bytes, into: &head)
        var view = TargetView()
        return [
            Benchmark(group: "rules", name: "path read") { _ in
                view.read(head, bytes.span)
                return view.segmentCount == 3
            }
        ]
    }

    /// Rules as services have them: a few versions, many resources, a wildcard for the number.
    private static func matching(_ count: Int) -> [Benchmark] {
        do throws(PathPattern.Fault) {
            var rules: [Rule] = []
            for index in 0..<count {
                let path = try PathPattern("/v\(index % 3)/resource\(index)/*/items")
                let match = RouteMatch(methods: ["GET", "POST"], path: path)
                rules.append(rule(index, match))
            }
            guard let set = RuleSet(rules, default: rule(count, .all)) else { return [] }
            let last = count - 1
            let requests = [
                ("first of", "/v0/resource0/17/items", 0),
                ("last of", "/v\(last % 3)/resource\(last)/17/items", last),
                ("none of", "/v1/resource\(count)/17/items", count),
            ]
            return requests.map { benchmark(set, "\($0.0) \(count)", $0.1, expecting: $0.2) }
        } catch {
            preconditionFailure("RuleBenchmarks: \(error)")
        }
    }

    private static func rule(_ index: Int, _ match: RouteMatch) -> Rule {
        Rule(id: "r\(index)", index: index, match: match, origin: OriginIndex(0), mode: .off)
    }

    private static func benchmark(
        _ set: RuleSet,
        _ name: String,
        _ path: String,
        expecting index: Int
    ) -> Benchmark {
        let bytes = Array("GET \(path) HTTP/1.1\r\nHost: api.example.com\r\n\r\n".utf8)
        var head = RequestHead()
        _ = HTTPBenchmarks.read(bytes, into: &head)
        var view = TargetView()
        view.read(head, bytes.span)
        return Benchmark(group: "rules", name: name) { _ in
            let method = bytes.span.extracting(head.methodRange)
            let host = bytes.span.extracting(head.authority)
            switch set.route(method: method, host: host, view: &view) {
            case .rule(let rule): return rule.index == index
            case .disputed, .malformed: return false
            }
        }
    }
}
