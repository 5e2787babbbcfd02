import Encodings
import Expectations
import Testing

@Suite struct JSONReaderTests {
    /// The members of a flat object, or why there are none.
    private func members(_ text: String) throws(JSONError) -> [String: JSONReader.Scalar] {
        let bytes = Array(text.utf8)
        var reader = JSONReader()
        var members: [String: JSONReader.Scalar] = [:]
        try reader.beginObject(bytes.span)
        while let name = try reader.nextName(bytes.span) {
            members[String(decoding: name, as: UTF8.self)] = try reader.scalar(bytes.span)
        }
        try reader.end(bytes.span)
        return members
    }

    @Test func `strings, whole numbers, truth values and null are read`() throws {
        let text =
            #" { "s" : "a\/\u00e4\ud83d\ude00\"" , "n":-9223372036854775807,"t":true,"#
            + #""f":false,"z":null,"o":0 } "#
        let expected: [String: JSONReader.Scalar] = [
            "s": .string(Array("a/ä😀\"".utf8)), "n": .number(-.max), "t": .boolean(true),
            "f": .boolean(false), "z": .null, "o": .number(0),
        ]
        try expectEqual(members(text), expected)
        #expect(try members("{}").isEmpty)
    }

    @Test(arguments: [
        ("", 1, "“{” is missing"),
        ("[]", 1, "“{” is missing"),
        (#"{"a":1,}"#, 8, "a string is missing"),
        (#"{,"a":1}"#, 2, "a string is missing"),
        (#"{"a":1 "b":2}"#, 8, "“,” is missing"),
        (#"{"a" 1}"#, 6, "“:” is missing"),
        (#"{"a":}"#, 6, "use a string, a whole number, true, false or null"),
        (#"{"a":tru}"#, 6, "use a string, a whole number, true, false or null"),
        (#"{"a":{}}"#, 6, "use a string, a whole number, true, false or null"),
        (#"{"a":01}"#, 7, "a number begins with a zero"),
        (#"{"a":-}"#, 7, "a digit is missing"),
        (#"{"a":1.}"#, 8, "a digit is missing"),
        (#"{"a":1.5}"#, 6, "use a whole number"),
        (#"{"a":1e2}"#, 6, "use a whole number"),
        (#"{"a":-0}"#, 6, "use a whole number"),
        (#"{"a":9223372036854775808}"#, 6, "the number is too large"),
        (#"{"a":99999999999999999999999}"#, 6, "the number is too large"),
        (#"{"a":"\x"}"#, 7, "an escape that JSON does not have"),
        (#"{"a":"\ud800"}"#, 7, "an escape that is no character by itself"),
        (#"{"a":"\ud800\u0041"}"#, 7, "an escape that is no character by itself"),
        (#"{"a":"\u12"}"#, 7, "an escape that is no character by itself"),
        ("{\"a\":\"\n\"}", 7, "a control character in a string; write it as an escape"),
        (#"{"a":"x"#, 8, "the string does not end"),
        (#"{"a":"x\"#, 8, "the string does not end"),
        (#"{"a":1} {}"#, 9, "the text goes on behind its end"),
    ])
    func `a malformed text is told with its column`(text: String, column: Int, what: String) {
        let error = #expect(throws: JSONError.self) { try members(text) }
        expectEqual(error?.column, column)
        expectEqual(error?.text, what)
    }

    @Test func `what nobody asked for is passed over, as deep as the limit`() throws {
        func skip(_ text: String) throws(JSONError) {
            let bytes = Array(text.utf8)
            var reader = JSONReader()
            try reader.skipValue(bytes.span, depth: 0)
            try reader.end(bytes.span)
        }
        try skip(#"[{"a":[1.5e-3,-0,"\n",{}],"b":null},true,[]]"#)
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        try skip(nested(JSONReader.depthMax))
        for text in [
            nested(JSONReader.depthMax + 1), String(repeating: "[", count: 100_000), "[1,]", "[,1]",
            "{\"a\"}", "[01]", "[}",
        ] {
            #expect(throws: JSONError.self) { try skip(text) }
        }
    }

    @Test func `every truncation is an error and no trap`() {
        let text = #"{"s":"a\u00e4\ud83d\ude00","n":-12,"t":true,"z":null}"#
        for count in 0..<text.utf8.count {
            let part = String(decoding: Array(text.utf8).prefix(count), as: UTF8.self)
            #expect(throws: JSONError.self) { try members(part) }
        }
    }
}
