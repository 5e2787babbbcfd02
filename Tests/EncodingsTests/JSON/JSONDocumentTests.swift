import Encodings
import Testing

@Suite struct JSONDocumentTests {
    private func document(_ text: String) -> JSONDocument? {
        JSONDocument(Array(text.utf8).span, members: ["challenge", "n"])
    }

    @Test func `strings and whole numbers are read, other members passed over`() throws {
        let read = try #require(document(#"{"challenge":"a\n","n":12,"x":[{"n":1}]}"#))
        #expect(read.string("challenge") == "a\n" && read.integer("n") == 12 && !read.has("x"))
    }

    // Found by fuzzing: the reader of numbers went on where that of strings had given up.
    @Test(arguments: [
        ##"{"challenge":"#\q15}"##, #"{"challenge":"\x1}"#, #"{"n":"\u12g7}"#, #"{"n":"\}"#,
    ])
    func `a string with a broken escape is not read as the number behind it`(text: String) {
        #expect(document(text) == nil)
    }
}
