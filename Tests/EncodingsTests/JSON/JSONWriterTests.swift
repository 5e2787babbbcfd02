import Encodings
import Expectations
import Foundation
import Testing

@Suite struct JSONWriterTests {
    @Test func `JSON is one line, or indented, and safe for a terminal`() throws {
        let value = JSONValue.object([
            .init("a", .array([.number(-1), .bool(true), .null, .array([]), .object([])])),
            .init("b", .string("\"\\/\n\u{1B}[2J\u{9B}\u{202E}é")),
        ])
        let line = #"{"a": [-1, true, null, [], {}], "b": "\"\\/\u000a\u001b[2J\u009b\u202eé"}"#
        expectEqual(value.line, line)
        expectEqual(
            value.pretty,
            """
            {
              "a": [
                -1,
                true,
                null,
                [],
                {}
              ],
              "b": "\\"\\\\/\\u000a\\u001b[2J\\u009b\\u202eé"
            }
            """
        )
        let read = try JSONSerialization.jsonObject(with: Data(value.line.utf8))
        let text = (read as? [String: Any])?["b"] as? String
        expectEqual(text, "\"\\/\n\u{1B}[2J\u{9B}\u{202E}é")
    }

    @Test(arguments: [
        (JSONWriter.Layout.compact, #"{"a":1,"list":["x",null],"none":{},"b":null,"c":false}"#),
        (.spaced, #"{"a": 1, "list": ["x", null], "none": {}, "b": null, "c": false}"#),
        (
            .indented,
            """
            {
              "a": 1,
              "list": [
                "x",
                null
              ],
              "none": {},
              "b": null,
              "c": false
            }
            """
        ),
    ])
    func `a text is written in three layouts`(layout: JSONWriter.Layout, text: String) {
        var json = JSONWriter(layout)
        json.object { json in
            json.member("a", 1)
            json.array("list") { json in
                json.element("x")
                json.element(.null)
            }
            json.object("none") { _ in }
            json.member("b", Double.nan)
            json.member("c", false)
        }
        expectEqual(json.text, text)
        expectEqual(json.line, Array((text + "\n").utf8))
    }

    @Test func `every character is read back as it was written`() throws {
        let scalars = (0..<0x3000).compactMap(Unicode.Scalar.init(_:)).map(String.init)
        let text = scalars.joined() + "größer 👩‍👩‍👧 \u{10FFFF}"
        let line = JSONValue.string(text).line
        let read = try JSONSerialization.jsonObject(
            with: Data(line.utf8),
            options: .fragmentsAllowed
        )
        expectEqual((read as? String)?.unicodeScalars.elementsEqual(text.unicodeScalars), true)
        var reader = JSONReader()
        let bytes = Array(line.utf8)
        try expectEqual(reader.string(bytes.span), Array(text.utf8))
    }

    @Test func `bytes that are no UTF-8 are written as the characters of their numbers`() {
        var bytes: [UInt8] = []
        bytes.appendJSONString(latin1: [0x22, 0x5C, 0x41, 0x0A, 0x7F, 0xFF].span)
        expectEqual(bytes, Array(##""\"\\A\u000a\u007f\u00ff""##.utf8))
    }

    @Test func `lines follow each other, and the last one can be taken back`() {
        var json = JSONWriter()
        for number in [1, 2] as [Int64] {
            json.beginObject()
            json.name("n")
            json.value(number)
            json.name("text")
            json.value("\"")
            json.endObject()
            json.endLine()
        }
        let line = #"{"n":1,"text":"\""}"# + "\n"
        expectEqual(json.text, line + line.replacing("1", with: "2"))
        json.truncate(to: line.utf8.count)
        expectEqual(json.take(), Array(line.utf8))
        #expect(json.bytes.isEmpty)
    }
}
