import Cryptography
import Expectations
import Foundation
import Testing

@testable import Services

/// The dashboard's document, and what a browser may do with it.
struct DashboardPageTests {
    private let page = DashboardPage(calls: .token)
    private var text: String { String(decoding: page.html, as: UTF8.self) }

    private func field(_ name: String) throws -> String {
        try #require(page.fields.first { $0.name == name }?.value)
    }

    /// What is between the first opening tag and the last closing one.
    private func content(of tag: String) throws -> Substring {
        let start = try #require(text.range(of: "<\(tag)>"))
        let end = try #require(text.range(of: "</\(tag)>", options: .backwards))
        return text[start.upperBound..<end.lowerBound]
    }

    @Test func `the policy admits the style and the script of the page, by their hashes alone`()
        throws
    {
        let policy = try field("Content-Security-Policy").components(separatedBy: "; ")
        for (directive, tag) in [("script-src", "script"), ("style-src", "style")] {
            let digest = SHA256.digest(of: Array(try content(of: tag).utf8)).array
            let hash = Data(digest).base64EncodedString()
            #expect(policy.contains("\(directive) 'sha256-\(hash)'"))
        }
        for directive in [
            "default-src 'none'", "connect-src 'self'", "img-src data:", "base-uri 'none'",
            "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ] {
            #expect(policy.contains(directive))
        }
        expectEqual(policy.count, 10)
        #expect(!policy.joined().contains("unsafe"))
        try expectEqual(field("Referrer-Policy"), "no-referrer")
        try expectEqual(field("Cross-Origin-Resource-Policy"), "same-origin")
    }

    @Test func `the page is whole: no mark is left, one style, one script, its calls`() throws {
        #expect(!text.contains("{{") || !text.contains("}}"))
        for tag in ["style", "script"] {
            expectEqual(text.components(separatedBy: "<\(tag)").count, 2)
            expectEqual(text.components(separatedBy: "</\(tag)").count, 2)
        }
        #expect(text.contains(#"<body data-calls="token">"#))
        let other = String(decoding: DashboardPage(calls: .none).html, as: UTF8.self)
        #expect(other.contains(#"<body data-calls="none">"#))
    }

    /// Names of strangers are among what it shows.
    @Test func `the script makes no markup of a text, and keeps no token`() throws {
        let script = try content(of: "script")
        for word in [
            "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(",
            "srcdoc", "sessionStorage", "document.cookie", "javascript:", "DOMParser",
        ] {
            #expect(!script.contains(word), "\(word)")
        }
        // The one thing that outlives the page.
        let kept = script.components(separatedBy: "localStorage.setItem(").dropFirst()
        #expect(kept.count == 1 && kept.allSatisfy { $0.hasPrefix("'theme'") })
        // Handlers and styles in attributes would not take effect.
        let markup = text.replacingOccurrences(of: script, with: "")
        #expect(markup.firstMatch(of: /\son[a-z]+=/) == nil)
        #expect(markup.firstMatch(of: /\sstyle=/) == nil)
    }

    @Test func `the page loads nothing from elsewhere`() {
        let addresses = text.matches(of: /(?:https?:)?\/\/[a-z0-9.]+/).map { String($0.output) }
            .filter { $0 != "http://www.w3.org" }
        expectEqual(addresses, [])
    }
}
