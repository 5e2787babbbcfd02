import Expectations
import Testing

@testable import Gateway

/// What commands print of texts that came from others.
struct TerminalTextTests {
    @Test(arguments: [
        ("g1\tserving\n", "g1\tserving\n"), ("für → 日本", "für → 日本"), ("", ""),
        ("\u{1B}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"), ("a\rb", "a\\u{d}b"),
        ("\u{9B}2J", "\\u{9b}2J"), ("\u{7F}\u{0}", "\\u{7f}\\u{0}"),
        ("\u{202E}txt.exe", "\\u{202e}txt.exe"), ("a\u{2028}b\u{2066}", "a\\u{2028}b\\u{2066}"),
        ("x\r\n", "x\\u{d}\n"),
    ])
    func `what a terminal takes for a command is shown`(text: String, shown: String) {
        expectEqual(String(decoding: TerminalText(text).bytes, as: UTF8.self), shown)
    }
}
