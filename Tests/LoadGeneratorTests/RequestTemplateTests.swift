import ConfigurationReading
import Cryptography
import Encodings
import Expectations
import Foundation
import HTTPWire
import RequestBinding
import Rules
import Testing
import Verification

@testable import LoadGenerator

@Suite struct RequestTemplateTests {
    /// The one file of a configuration.
    private struct OneFile: ConfigurationFiles {
        let text: String

        func contents(of path: String, limit: Int) throws(FileFault) -> [UInt8] {
            Array(text.utf8)
        }
        func names(in folder: String) throws(FileFault) -> [String] { [] }
        func permissions(of path: String) throws(FileFault) -> UInt16 { 0o600 }
    }

    /// A configuration with one rule, by the code that reads the gateway's own.
    static func configuration(_ rule: String) -> GatewayConfiguration? {
        let text = """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { shop: { servers: ["127.0.0.1:1"] } }
            apps: [{ id: TEAM123456.com.example, environments: [production] }]
            store: { sqlite: p.db }
            default: { origin: shop, mode: off }
            rules: [{ id: a, match: { path: /a }, mode: enforce, \(rule) }]
            """
        return ConfigurationLoader.load("p.yaml", files: OneFile(text: text)).configuration
    }

    /// What a rule asks.
    static func demand(_ rule: String) -> RequestDemand? {
        guard let configuration = configuration(rule),
            case .rule(let rule) = configuration.rule(for: RequestSketch(method: "PUT", url: "/a"))
        else { return nil }
        return RequestDemand(rule)
    }

    static func template(
        _ sign: String,
        more: String = "",
        content: ContentPlan = .none
    ) -> RequestTemplate {
        guard let demand = demand("sign: \(sign)\(more)"),
            let url = LoadURL("http://example.com/a?b=1")
        else {
            preconditionFailure("RequestTemplateTests: the rule is not valid")
        }
        let fields = [(name: "X-Kind", value: "1"), (name: "x-kind", value: "2")]
        var request = LoadPlan.Request(method: "PUT", url: url, fields: fields)
        request.content = content
        return RequestTemplate(demand, of: request)
    }

    private static let proof = ProofTexts(
        keyID: Array("KEY".utf8),
        assertion: [UInt8](repeating: UInt8(ascii: "s"), count: 188),
        challenge: [UInt8](repeating: UInt8(ascii: "C"), count: 56)
    )

    private static func bytes(
        _ template: RequestTemplate,
        _ sending: Sending,
        _ proof: ProofTexts? = proof
    ) -> [UInt8] {
        let content = template.contents.count - 1
        let message = template.message(proof, sending, content: content)
        return message.head + message.body
    }

    private static func text(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self)
    }

    @Test func `a request carries what the rule asks for, in its own field names`() {
        let template = Self.template(
            "[method, target, body, challenge]",
            more: ", fields: { key_id: x-key }",
            content: ContentPlan(3...3, isChunked: false)
        )
        let proof = String(repeating: "s", count: 188)
        let challenge = String(repeating: "C", count: 56)
        expectEqual(
            Self.text(Self.bytes(template, .good)),
            """
            PUT /a?b=1 HTTP/1.1\r
            Host: example.com\r
            X-Kind: 1\r
            x-kind: 2\r
            x-key: KEY\r
            app-attest-assertion: \(proof)\r
            app-attest-challenge: \(challenge)\r
            Content-Length: 3\r
            Content-Digest: sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:\r
            \r
            abc
            """
        )
        #expect(!Self.text(Self.bytes(template, .missing, nil)).contains("x-key"))
    }

    @Test func `what is signed is what the client guide describes`() {
        let template = Self.template(
            "[method, target, body, challenge]",
            more: ", headers: [host, x-kind, x-none]",
            content: ContentPlan(3...3, isChunked: true)
        )
        let hash = template.hash(0, challenge: Self.proof.challenge)
        let lines = RequestLines.clientData(
            .all,
            of: RequestLines.Request(
                method: "PUT",
                target: "/a?b=1",
                digest: SHA256.digest(of: Array("abc".utf8)).array,
                headers: [("host", "example.com"), ("x-kind", "1, 2"), ("x-none", nil)]
            ),
            challenge: String(repeating: "C", count: 56)
        )
        expectEqual(hash, SHA256.digest(of: lines).array)
    }

    @Test(arguments: [Sending.tamperedSignature, .tamperedContent])
    func `tampering changes one byte`(sending: Sending) {
        let template = Self.template(
            "[method, body]",
            content: ContentPlan(3...3, isChunked: true)
        )
        let (good, other) = (Self.bytes(template, .good), Self.bytes(template, sending))
        expectEqual(good.count, other.count)
        expectEqual(zip(good, other).filter(!=).count, 1)
    }

    @Test func `tampering with the target leaves method and path`() {
        let text = Self.text(Self.bytes(Self.template("[method, target]"), .tamperedTarget))
        #expect(text.hasPrefix("PUT /a?b=1&changed=1 HTTP/1.1\r\n"))
    }

    @Test func `a challenge inside JSON is where the rule looks, and is signed with it`() throws {
        let more = ", challenge: { need: required, json_pointer: /auth/filling }"
        let template = Self.template(
            "content",
            more: more,
            content: ContentPlan(90...90, isChunked: false)
        )
        let text = Self.text(Self.bytes(template, .good))
        let start = try #require(text.range(of: "\r\n\r\n"))
        let content = Array(text[start.upperBound...].utf8)
        let pointer = try #require(JSONPointer("/auth/filling"))
        expectEqual(pointer.string(in: content.span), Self.proof.challenge)
        #expect(!text.contains("app-attest-challenge"))
        #expect(text.contains("Content-Length: \(content.count)\r\n"))
        let hash = template.hash(0, challenge: Self.proof.challenge)
        expectEqual(hash, SHA256.digest(of: content).array)
        // Changed, it is still JSON with the challenge in it.
        let other = Self.text(Self.bytes(template, .tamperedContent))
        let changed = Array(other[start.upperBound...].utf8)
        #expect(changed != content)
        expectEqual(pointer.string(in: changed.span), Self.proof.challenge)
    }

    @Test func `what has to come of each request follows from the rule`() {
        let streamed = Self.template(
            "[target, body]",
            content: ContentPlan(1...1, isChunked: false)
        )
        expectEqual(
            streamed.demand.tamperings(hasContent: true),
            [.tamperedSignature, .tamperedTarget, .tamperedContent]
        )
        expectEqual(Sending.tamperedContent.expected(hasDeclaredDigest: true), .digestMismatch)
        expectEqual(Sending.tamperedContent.expected(hasDeclaredDigest: false), .signatureMismatch)
        expectEqual(
            Self.template("challenge").demand.tamperings(hasContent: true),
            [.tamperedSignature]
        )
        expectEqual(Sending.good.expected(hasDeclaredDigest: true), nil)
        expectEqual(Sending.replayed.expected(hasDeclaredDigest: true), .counterReplayed)
        for sending in Sending.allCases {
            let isAdmitted = [.good, .opening].contains(sending)
            expectEqual((sending.expected(hasDeclaredDigest: true) == nil), isAdmitted)
        }
    }
}
