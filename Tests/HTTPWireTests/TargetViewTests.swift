import Expectations
import HTTPWire
import Testing

struct TargetViewTests {
    private static func view(_ path: String) -> TargetView {
        let bytes = Array(path.utf8)
        var view = TargetView()
        view.read(bytes.span, 0..<bytes.count)
        return view
    }

    private static func segments(_ path: String) -> [String] {
        let view = view(path)
        return (0..<view.segmentCount).map { text(view.bytes, view.segment($0)) }
    }

    @Test(
        arguments: [
            ("/", []), ("", []), ("/a", ["a"]), ("/a/b", ["a", "b"]), ("/a/", ["a", ""]),
            ("//a", ["", "a"]), ("/%61dmin", ["admin"]), ("/a%20b", ["a b"]), ("/%3a", [":"]),
            ("/%252f", ["%2f"]), ("/caf%C3%A9", ["café"]), ("/...", ["..."]), ("/.a", [".a"]),
        ] as [(String, [String])]
    )
    func `segments are decoded once`(_ path: String, _ segments: [String]) {
        expectEqual(Self.segments(path), segments)
        expectEqual(Self.view(path).refusal(), nil)
    }

    @Test(
        arguments: [
            ("/a%2fb", .pathEncodedSlash), ("/a%2Fb", .pathEncodedSlash),
            ("/a%5cb", .pathEncodedBackslash), ("/a\\b", .pathBackslash), ("/a%00", .pathControl),
            ("/a%0d%0a", .pathControl), ("/a%7f", .pathControl), ("/a%zz", .pathEscape),
            ("/a%2", .pathEscape), ("/a%", .pathEscape), ("/a/../b", .pathDotSegment),
            ("/..", .pathDotSegment), ("/.", .pathDotSegment), ("/./a", .pathDotSegment),
            ("/%2e%2E/a", .pathDotSegment), ("/.%2e", .pathDotSegment), ("/..;/a", .pathDotSegment),
            ("/..;x=1/a", .pathDotSegment), ("/.%2e%3bx/a", .pathDotSegment),
            ("/a%c0%afb", .pathEncoding), ("/%ff", .pathEncoding),
        ] as [(String, Malformed.Reason)]
    )
    func `what can't be viewed in one way is refused`(_ path: String, _ reason: Malformed.Reason) {
        expectEqual(Self.view(path).refusal(), reason)
    }

    @Test func `a rule may allow some constructs and no others`() {
        expectEqual(Self.view("/a%2fb").refusal(allowing: .encodedSlash), nil)
        expectEqual(Self.view("/a%5cb").refusal(allowing: .encodedSlash), .pathEncodedBackslash)
        expectEqual(Self.view("/a\\b").refusal(allowing: .backslash), nil)
        expectEqual(Self.view("/%ff").refusal(allowing: .invalidEncoding), nil)
        let all = PathConstructs(rawValue: .max)
        for path in ["/a/../b", "/a%2f..%2fb", "/a\\..\\b", "/a%5c.", "/..%2f"] {
            expectEqual(Self.view(path).refusal(allowing: all), .pathDotSegment)
        }
        expectEqual(Self.view("/%00").refusal(allowing: all), .pathControl)
        expectEqual(Self.view("/%").refusal(allowing: all), .pathEscape)
    }

    @Test func `an allowed encoded slash does not split a segment`() {
        expectEqual(Self.segments("/a%2Fb/c"), ["a/b", "c"])
    }

    @Test func `a path says when its interpretations differ`() {
        expectEqual(Self.view("//a").findings, .emptySegment)
        expectEqual(Self.view("/a/").findings, .trailingSlash)
        expectEqual(Self.view("/a;b").findings, .pathParameter)
        expectEqual(Self.view("/a%3Bb").findings, [.encodedParameter, .escape])
        expectEqual(Self.view("/a%20b").findings, .escape)
        expectEqual(Self.view("/a/b").findings, [])
        expectEqual(Self.view("/").findings, [])
    }

    @Test func `a view keeps nothing of the last one`() {
        var view = Self.view("/a%2f/../;/x")
        let bytes = Array("/b".utf8)
        view.read(bytes.span, 0..<2)
        #expect(view.findings == [] && view.segmentCount == 1)
        #expect(view.segment(0, equals: Array("b".utf8)))
        #expect(!view.segment(0, equals: Array("B".utf8)))
    }
}
