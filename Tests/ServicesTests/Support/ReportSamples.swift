import AppAttest
import Cryptography
import HTTPWire
import KeyStore
import Rules
import Verification

@testable import Services

extension Rollout {
    static let sample = Rollout(.fixed(.whole), salt: "orders")
}

extension ReportedRequest {
    /// A key of its own for each number.
    static func key(_ number: Int) -> KeyID { KeyID(SHA256.digest(of: Array("\(number)".utf8))) }

    /// A request of an enrolled key, which has signed it.
    static func signed(
        _ number: Int,
        _ outcome: Verdict.Outcome = .pass,
        version: String? = nil,
        system: ClaimedSystem? = nil,
        isRefused: Bool = false
    ) -> ReportedRequest {
        let key = key(number)
        var verdict = Verdict(outcome, keyID: key)
        verdict.environment = .production
        verdict.level = .signed
        verdict.appVersion = version.flatMap { AppVersion($0) }
        let bucket = Rollout.sample.bucket(of: key.digest.bytes.span)
        return ReportedRequest(
            verdict,
            ClientClaims(system: system),
            address: .v4(1),
            fate: outcome == .pass ? .forwarded : .refused(bucket),
            isRefused: isRefused
        )
    }

    /// A request without an assertion.
    static func bare(
        _ address: UInt32,
        _ outcome: Verdict.Outcome = .refuse(.assertionMissing),
        claimed: String? = nil,
        system: ClaimedSystem? = nil
    ) -> ReportedRequest {
        let address = IPAddress.v4(address)
        return ReportedRequest(
            Verdict(outcome),
            ClientClaims(version: claimed.flatMap { AppVersion($0) }, system: system),
            address: address,
            fate: .refused(Rollout.sample.bucket(of: address.bytes.span)),
            isRefused: false
        )
    }
}

extension RuleCounts {
    init(_ requests: [ReportedRequest]) {
        self.init()
        for request in requests {
            add(request)
            add(nanoseconds: 1_000_000)
        }
    }
}
