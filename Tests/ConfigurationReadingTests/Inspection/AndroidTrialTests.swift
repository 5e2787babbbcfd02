import Encodings
import Expectations
import Foundation
import KeyAttestation
import Signatures
import TestSupport
import Testing

@testable import ConfigurationReading

extension AndroidTrial.Options: TrialOptions {
    init(_ vector: AndroidVector) {
        self.init()
        app = vector.expected.packages?.first?.name ?? "com.example.shop"
        signers = vector.expected.signersHex ?? [String(repeating: "0", count: 64)]
        challenge = vector.challengeB64
        at = vector.verifyAt
        message = vector.signature?.messageB64
        signature = vector.signature?.signatureB64
    }

    func report(on bytes: [UInt8]) throws -> TrialReport {
        try AndroidTrial(self, now: now).report(on: bytes)
    }
}

extension AndroidVector {
    /// The file that the command reads.
    var pem: [UInt8] {
        let blocks = chainB64.map {
            "-----BEGIN CERTIFICATE-----\n\($0)\n-----END CERTIFICATE-----\n"
        }
        return Array(blocks.joined().utf8)
    }
}

@Suite struct AndroidTrialTests {
    private static let all = SharedVectors.androidChains
    private static let enrolling = all.filter(\.mayEnrol)

    /// What is expected of each chain, as the file has it.
    private func expected(_ vector: AndroidVector) throws -> [String: Any] {
        let folder = try #require(SharedVectorFiles.folder)
        let file = folder.appending(path: "android/chains/\(vector.id).json")
        let json = try JSONSerialization.jsonObject(with: Data(contentsOf: file))
        return try #require((json as? [String: Any])?["expected"] as? [String: Any])
    }

    @Test(arguments: all)
    func `a genuine chain has the verdict and every field that is expected`(
        _ vector: AndroidVector
    ) throws {
        let report = try AndroidTrial.Options(vector).report(on: vector.pem)
        expectEqual((report.status == .accepted), vector.mayEnrol)
        expectEqual(report.json["reason"], vector.refusal.map { .string($0) })
        let line = Data(report.json.line.utf8)
        let found = try #require(
            try JSONSerialization.jsonObject(with: line) as? [String: Any]
        )
        let expected = try expected(vector)
        for (name, value) in expected {
            let value = try #require(value as? NSObject)
            #expect(found[name] as? NSObject == value, "\(name)")
        }
        // These are there where there is something to say.
        for name in ["why", "limits", "module_hash_hex", "quirks"] where expected[name] == nil {
            #expect(found[name] == nil || found[name] is NSNull, "\(name)")
        }
        if vector.mayEnrol {
            expectEqual(report.json["public_key"], report.json["key"]?["public_key_x963_b64"])
        }
    }

    /// The content of a file beside the chains.
    private static func file(_ path: String) throws -> [UInt8] {
        let folder = try #require(SharedVectorFiles.folder)
        return try Array(Data(contentsOf: folder.appending(path: "android/\(path)")))
    }

    /// A row of `status/expected.json`.
    private struct StatusRow: Decodable {
        let file: String
        let chain: String
        let expect: String
        let reason: String?
    }

    @Test(.enabled(if: !all.isEmpty))
    func `each status list does to a chain what is expected`() throws {
        let rows = try JSONDecoder().decode(
            [StatusRow].self,
            from: Data(try Self.file("status/expected.json"))
        )
        expectEqual(Set(rows.map(\.file)).count, 24)
        for row in rows {
            let vector = try #require(Self.all.first { $0.id == row.chain })
            var options = AndroidTrial.Options(vector)
            options.status = try Self.file("status/\(row.file)")
            let report: TrialReport?
            do {
                report = try options.report(on: vector.pem)
            } catch is UsageError {
                report = nil
            }
            let comment: Comment = "\(row.file) \(row.chain)"
            switch row.expect {
            case "accept": expectEqual(report?.status, .accepted, comment)
            case "refuse":
                expectEqual(report?.json["reason"], row.reason.map { .string($0) }, comment)
            case "not-accept": #expect(report?.status != .accepted, comment)
            default: expectEqual(row.expect, "either", comment)
            }
        }
    }

    @Test(.enabled(if: !all.isEmpty))
    func `a root of the folder stands in for Google's`() throws {
        let files = [
            ("rsa", "google-rsa"), ("ec2026", "google-ec-2026"),
            ("software", "test-only/aosp-software-ec"), ("software", "test-only/aosp-software-rsa"),
        ]
        for (root, file) in files {
            let pem = try Self.file("roots/\(file).pem")
            var trusted = 0
            for vector in Self.all {
                let report = try AndroidTrial.Options(vector).report(on: vector.pem)
                let isOther = vector.expected.root != root
                let reason = try AndroidTrial.Options(vector).reason(on: vector.pem) {
                    $0.root = pem
                }
                if reason == .string("malformed") { continue }
                if isOther { expectEqual(reason, .string("root-unknown"), "\(vector.id) \(file)") }
                if reason != .string("root-unknown") { trusted += 1 }
                if !isOther, root != "software" { expectEqual(reason, report.json["reason"]) }
            }
            #expect(trusted > 0, "\(file)")
        }
    }

    @Test(arguments: enrolling)
    func `a policy is obeyed`(_ vector: AndroidVector) throws {
        let options = AndroidTrial.Options(vector)
        func reason(_ policy: String) throws -> JSONValue? {
            try options.reason(on: vector.pem) { $0.policy = policy }
        }
        try expectEqual(reason("{}"), nil)
        try expectEqual(reason(#"{"min_os_patch_level": 201701, "provisioning": "any"}"#), nil)
        try expectEqual(reason(#"{"min_os_patch_level": 203001}"#), .string("os-patch-level"))
        try expectEqual(reason(#"{"origins": ["imported"]}"#), .string("origin"))
        try expectEqual(reason(#"{"boot_states": ["self-signed"]}"#), .string("boot-state"))
        try expectEqual(reason(#"{"security_levels": ["SOFTWARE"]}"#), .string("security-level"))
        try expectEqual(reason(#"{"provisioning": ["unknown"]}"#), .string("provisioning"))
    }

    @Test(arguments: all.filter { $0.refusal == "boot-state" })
    func `a policy may accept a system that was not checked`(_ vector: AndroidVector) throws {
        let options = AndroidTrial.Options(vector)
        let states = #""boot_states": ["verified", "self-signed", "unverified", "failed"]"#
        let locked = try options.reason(on: vector.pem) { $0.policy = "{\(states)}" }
        #expect(locked != .string("boot-state"))
        let unlocked = try options.reason(on: vector.pem) {
            $0.policy = "{\(states), \"require_locked\": false}"
        }
        #expect(unlocked != .string("bootloader-unlocked"))
        #expect(unlocked != .string("boot-state"))
    }

    @Test(arguments: enrolling.filter { $0.signature != nil })
    func `a signature is the attested key's over the message`(_ vector: AndroidVector) throws {
        let options = AndroidTrial.Options(vector)
        let mismatch = JSONValue.string("signature-mismatch")
        try expectEqual(options.reason(on: vector.pem), nil)
        try expectEqual(options.reason(on: vector.pem) { $0.message = "AAAA" }, mismatch)
        try expectEqual(options.reason(on: vector.pem) { $0.message = "" }, mismatch)
        try expectEqual(options.reason(on: vector.pem) { $0.signature = "AAAA" }, mismatch)
        #expect(throws: UsageError.self) {
            try options.reason(on: vector.pem) { $0.signature = nil }
        }
    }

    @Test(
        arguments: [
            { (options: inout AndroidTrial.Options) in options.app = "" },
            { $0.signers = ["00"] },
            { $0.signers.append("x") },
            { $0.challenge = "no base64" },
            { $0.at = "yesterday" },
            { $0.status = [] },
            { $0.status = Array("{}".utf8) },
            { $0.root = Array("no PEM".utf8) },
            { $0.policy = "" },
            { $0.policy = "[]" },
            { $0.policy = #"{"origin": []}"# },
            { $0.policy = #"{"origins": ["stolen"]}"# },
            { $0.policy = #"{"origins": [], "origins": []}"# },
            { $0.policy = #"{"require_locked": 1}"# },
            { $0.policy = #"{"min_os_patch_level": "202601"}"# },
        ] as [@Sendable (inout AndroidTrial.Options) -> Void]
    )
    func `an option that can't be meant is wrong usage`(
        _ change: @Sendable (inout AndroidTrial.Options) -> Void
    ) throws {
        var options = AndroidTrial.Options()
        options.app = "com.example.shop"
        options.signers = [String(repeating: "0a:", count: 31) + "0A"]
        options.at = "now"
        try expectEqual(options.reason(on: []), .string("malformed"))
        change(&options)
        #expect(throws: UsageError.self) { try options.report(on: []) }
    }
}
