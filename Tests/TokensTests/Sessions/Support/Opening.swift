import AppAttest
import Cryptography
import RequestBinding
import SoftwareAuthenticator

@testable import Tokens

/// Sessions of keys that a software device has made.
struct Opening {
    static let appID = "TEAM123456.com.example.shop"
    private static let authority = SoftwareAuthority(
        seed: Array("sessions".utf8),
        madeAt: UnixTime(seconds: 1_790_000_000)
    )

    let table: SessionTable

    init(lifetime: Int64 = 600, window: Int = 256, sessionsMax: Int = 1_000) {
        table = SessionTable(
            SessionTable.Limits(lifetime: lifetime, window: window, sessionsMax: sessionsMax),
            secret: Array(repeating: 7, count: 32)
        )
    }

    static func makeKey() -> SoftwareKey {
        let device = SoftwareDevice(
            authority: authority,
            appID: appID,
            environment: .production,
            shape: .beforeTwentySeven
        )
        return device.makeKey()
    }

    /// The evidence of an assertion that the key has made.
    static func evidence(_ key: SoftwareKey) throws -> VerifiedEvidence {
        var key = key
        let clientData = Array("open".utf8)
        let assertion = try UnverifiedAssertion(bytes: key.assertion(clientData: clientData))
        return VerifiedEvidence(
            try assertion.verified(
                clientData: clientData,
                key: key.publicKey,
                app: AppIDHash(appID: appID),
                after: .zero
            )
        )
    }

    func open(_ key: SoftwareKey, now: Int64 = 1_000) throws -> SessionTable.Opened {
        table.open(key.keyID, try Self.evidence(key), now: now)
    }

    /// The session of an id; `nil` when it is not open.
    func session(_ opened: SessionTable.Opened, now: Int64 = 1_000) -> Session? {
        guard case .live(let session) = table.find(opened.id.span, now: now) else { return nil }
        return session
    }
}

extension SequenceNumber {
    /// A number that a test knows to be in range.
    init(known value: UInt64) { self = SequenceNumber(value) ?? .max }
}
