import ConfigurationReading
import Cryptography
import Encodings
import Expectations
import Foundation
import RequestBinding
import Rules
import Signatures
import SoftwareAuthenticator
import Testing
import Tokens

@testable import LoadGenerator

@Suite struct TokenTests {
    private static let now = UnixTime(seconds: 1_800_000_000)
    private static let fleet = DeviceFleet(
        seed: "seed",
        appID: "TEAM123456.com.example",
        package: "com.example.shop",
        platforms: PlatformMix("apple,android") ?? .apple,
        count: 2
    )

    /// A configuration whose rule asks for tokens.
    private func configuration(
        keys fleet: DeviceFleet = fleet,
        integrity: String = "integrity: { proof: play, action: refuse },"
    ) throws -> GatewayConfiguration {
        let signer = String(repeating: "07", count: 32)
        let text = """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { shop: { servers: ["127.0.0.1:1"] } }
            apps:
              - { id: TEAM123456.com.example, environments: [production] }
              - { android: com.example.shop, signers: ["\(signer)"] }
            store: { sqlite: p.db }
            default: { origin: shop, mode: off }
            proofs:
              play: { kind: play-integrity, decryption_key: d, verification_key: v }
            rules:
              - { id: a, match: { path: /a }, mode: enforce, \(integrity) sign: [method, target] }
              - { id: b, match: { path: /b }, mode: enforce, integrity: { proof: play } }
            """
        let files = ["d": fleet.tokenKeys.decryption, "v": fleet.tokenKeys.verification]
        let loaded = ConfigurationLoader.load("p.yaml", files: Files(text: text, more: files))
        return try #require(loaded.configuration, "\(loaded.errors.map(\.text))")
    }

    private struct Files: ConfigurationFiles {
        let text: String
        let more: [String: String]

        func contents(of path: String, limit: Int) throws(FileFault) -> [UInt8] {
            Array((more[String(path.split(separator: "/").last ?? "")] ?? text).utf8)
        }
        func names(in folder: String) throws(FileFault) -> [String] { [] }
        func permissions(of path: String) throws(FileFault) -> UInt16 { 0o600 }
    }

    private func sign(
        _ configuration: GatewayConfiguration,
        device: Int
    ) throws -> [String: String] {
        let url = try #require(LoadURL("http://example.com/a"))
        var pairing = FleetPairing(Self.fleet, configuration, showsTokens: true, now: Self.now)
        let fields = try SingleRequest(
            LoadPlan.Request(method: "PUT", url: url),
            content: [],
            challenge: nil,
            by: &pairing,
            device: device
        ).fields
        return Dictionary(fields.map { ($0.name, $0.value) }) { $1 }
    }

    @Test func `a phone's token is bound to what it signs, and a device of Apple's has none`()
        throws
    {
        let configuration = try configuration()
        let name = "app-attest-integrity-token"
        try expectEqual(sign(configuration, device: 0)[name], nil)
        let token = try #require(try sign(configuration, device: 1)[name])
        let keys = Self.fleet.tokenKeys
        let decryption = try #require(Base64.decode(keys.decryption))
        let verification = try #require(Base64.decode(keys.verification))
        let reader = try #require(
            ClassicTokenKeys(decryption: decryption, verification: verification)
        )
        let payload = try reader.payload(of: Array(token.utf8).span)
        let lines = Array("portcullis-request-v1\nPUT\n/a\n-\n-\n".utf8)
        let hash = Base64.encodeURL(SHA256.digest(of: lines).array)
        let text = String(decoding: payload, as: UTF8.self)
        let bound = #""requestHash":"\#(String(decoding: hash, as: UTF8.self))""#
        #expect(text.contains(bound), "\(text)")
        #expect(text.contains(#""requestPackageName":"com.example.shop""#), "\(text)")
    }

    @Test func `no two tokens of a phone are of one millisecond`() throws {
        let configuration = try configuration()
        let pairing = FleetPairing(Self.fleet, configuration, showsTokens: true, now: Self.now)
        let rule = configuration.fileRules.rules.first
        let made = try TokenMint(pairing, for: rule?.integrity, of: "rule a")
        var mint = try #require(made)
        let key = Self.fleet.devices(at: Self.now).key(1)
        let hash = [UInt8](repeating: 1, count: 32)
        let keys = Self.fleet.tokenKeys
        let decryption = try #require(Base64.decode(keys.decryption))
        let verification = try #require(Base64.decode(keys.verification))
        let reader = try #require(
            ClassicTokenKeys(decryption: decryption, verification: verification)
        )
        let payloads = try (0..<20).map { _ in
            let made = mint.token(of: key, over: hash)
            let token = try #require(made)
            return try reader.payload(of: token.span)
        }
        expectEqual(Set(payloads).count, 20)
    }

    @Test func `tokens that the gateway can't read, or asks for nowhere, are said before`() throws {
        let other = DeviceFleet(seed: "other", appID: Self.fleet.appID, count: 1)
        for configuration in [
            try configuration(keys: other), try configuration(integrity: ""),
        ] {
            #expect(throws: LoadError.self) { try sign(configuration, device: 1) }
        }
    }
}
