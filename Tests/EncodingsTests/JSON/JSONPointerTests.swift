import Encodings
import Expectations
import Testing

@Suite struct JSONPointerTests {
    @Test(arguments: [
        ("/challenge", #"{"challenge":"abc"}"#, "abc"),
        (
            "/auth/challenge", #" { "x" : [1, {"y":null}], "auth": {"challenge" : "a\"b"} } "#,
            "a\"b"
        ),
        ("/a/1", #"{"a":["x","y"]}"#, "y"),
        ("/a~1b/~0", #"{"a/b":{"~":"v"}}"#, "v"),
        ("/c", #"{"c":"\u00e4\ud83d\ude00"}"#, "ä😀"),
        ("/c", #"{"n":-0.5e+10,"t":true,"f":false,"c":""}"#, ""),
    ])
    func `finds`(pointer: String, text: String, value: String) throws {
        let found = try #require(JSONPointer(pointer)).string(in: Array(text.utf8).span)
        expectEqual(found, Array(value.utf8))
    }

    @Test(arguments: [
        ("/c", #"{"c":1}"#),
        ("/c", #"{"d":"x"}"#),
        ("/c", #"{"c":"x","c":"y"}"#),
        ("/c", #"{"c":"x"} {}"#),
        ("/c", #"{"c":"x",}"#),
        ("/c", #"{"n":01,"c":"x"}"#),
        ("/c", #"{"c":"\ud800"}"#),
        ("/c", #"{"c":"x"#),
        ("/c", ""),
        ("/c", "[]"),
        ("/c", String(repeating: "[", count: 5000)),
        (
            "/c",
            #"{"a":"# + String(repeating: "[", count: 40) + String(repeating: "]", count: 40)
                + #","c":"x"}"#
        ),
    ])
    func `finds nothing`(pointer: String, text: String) throws {
        try expectEqual(#require(JSONPointer(pointer)).string(in: Array(text.utf8).span), nil)
    }

    @Test func `a pointer that is none is refused`() {
        expectEqual(JSONPointer("challenge"), nil)
        expectEqual(JSONPointer("/a~2"), nil)
        expectEqual(JSONPointer("/a~"), nil)
    }

    @Test(arguments: ["/a", "/a~1b/~0c/0", "/", "/a/"])
    func `a pointer's text is what it was read from`(text: String) throws {
        try expectEqual(#require(JSONPointer(text)).text, text)
    }

    @Test func `every truncation is refused without a trap`() throws {
        let text = Array(#"{"a":[1,2,{"b":"\u00e4"}],"c":"x"}"#.utf8)
        let pointer = try #require(JSONPointer("/c"))
        for end in 0..<text.count {
            expectEqual(pointer.string(in: text.span.extracting(0..<end)), nil)
        }
    }
}
