import AppAttest
import AppAttestServer
import Cryptography
import Expectations
import Foundation
import SoftwareAuthenticator
import Testing

/// The server of the documentation (Tests/Sample/Sources/AppAttestServer) and a software device.
@Suite struct ConversationTests {
    private static let appID = "ABCDE12345.com.example.shop"
    private static let now = Date(timeIntervalSince1970: 1_800_000_000)

    private let authority = SoftwareAuthority(seed: [3], madeAt: UnixTime(now))

    private var key: SoftwareKey {
        SoftwareDevice(
            authority: authority,
            appID: Self.appID,
            environment: .production,
            shape: .iOS27(category: .appStore, bundleVersion: "417")
        ).makeKey(seed: [1])
    }

    private func registry() -> DeviceRegistry {
        DeviceRegistry(
            app: ExpectedApp(
                id: Self.appID,
                environments: [.production],
                isMacOS: false,
                builds: .any
            ),
            attestationRoots: [authority.root],
            receiptRoots: [authority.root]
        )
    }

    private func enrol(_ key: SoftwareKey, at registry: inout DeviceRegistry) throws {
        let challenge = registry.makeChallenge()
        let hash = Self.hash(challenge)
        let attestation = Data(key.attestation(clientDataHash: hash, at: UnixTime(Self.now)))
        let record = try registry.enrol(
            attestation: attestation,
            keyID: key.keyID.base64,
            challenge: challenge,
            now: Self.now
        )
        expectEqual(record.publicKey, key.publicKey)
        // The challenge is spent.
        #expect(throws: DeviceRegistry.Failure.challengeUnknown) {
            try registry.enrol(
                attestation: attestation,
                keyID: key.keyID.base64,
                challenge: challenge,
                now: Self.now
            )
        }
    }

    private static func hash(_ data: Data) -> [UInt8] {
        SHA256.digest(of: Array(data)).array
    }

    @Test func `the documented server enrols a key, admits each request once, reads a receipt`()
        throws
    {
        var registry = registry()
        var key = key
        try enrol(key, at: &registry)
        let body = Data("body".utf8)
        let challenge = registry.makeChallenge()
        let assertion = Data(key.assertion(clientData: Array(challenge + body)))
        func admit(_ challenge: Data, _ body: Data) throws {
            try registry.admit(
                assertion: assertion,
                keyID: key.keyID.base64,
                challenge: challenge,
                body: body
            )
        }
        #expect(throws: AssertionRefusal.self) { try admit(challenge, Data("other".utf8)) }
        try admit(challenge, body)
        // A replay is refused by its counter. A challenge is good once for a new one, too.
        #expect(throws: AssertionRefusal(.counterReplayed, "")) { try admit(challenge, body) }
        let next = Data(key.assertion(clientData: Array(challenge + body)))
        #expect(throws: DeviceRegistry.Failure.challengeUnknown) {
            try registry.admit(
                assertion: next,
                keyID: key.keyID.base64,
                challenge: challenge,
                body: body
            )
        }
        let receipt = key.receipt(
            .refreshed(riskMetric: 3),
            clientDataHash: [1],
            at: UnixTime(Self.now)
        )
        try expectEqual(registry.risk(of: Data(receipt), keyID: key.keyID.base64), 3)
    }

    @Test func `counters survive the documented server's store`() throws {
        var registry = registry()
        var key = key
        try enrol(key, at: &registry)
        var again = self.registry()
        try again.restore(registry.export())
        let challenge = again.makeChallenge()
        key.counter = SignCounter(rawValue: 7)
        let assertion = Data(key.assertion(clientData: Array(challenge)))
        try again.admit(
            assertion: assertion,
            keyID: key.keyID.base64,
            challenge: challenge,
            body: Data()
        )
        var third = self.registry()
        try third.restore(again.export())
        let next = third.makeChallenge()
        key.counter = SignCounter(rawValue: 7)
        let repeated = Data(key.assertion(clientData: Array(next)))
        #expect(throws: AssertionRefusal.self) {
            try third.admit(
                assertion: repeated,
                keyID: key.keyID.base64,
                challenge: next,
                body: Data()
            )
        }
    }
}
