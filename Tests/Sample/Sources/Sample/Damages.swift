import AppAttest
import SoftwareAuthenticator

/// Every damage that the software device can do to its objects. The gateway's tests hold the
/// verifier with OpenSSL to the same refusals; here it is the one without.
struct Damages {
    let authority: SoftwareAuthority
    let appID: String
    let now: UnixTime

    private let hash = [UInt8](repeating: 3, count: 32)

    init(authority: SoftwareAuthority, appID: String, now: UnixTime) {
        (self.authority, self.appID, self.now) = (authority, appID, now)
    }

    /// How many were refused for what they are, and a line for each that was not.
    func tried() -> (count: Int, others: [String]) {
        var (count, others) = (0, [String]())
        func compare(_ damage: String, _ found: String?, _ expected: String?) {
            count += 1
            guard found != expected else { return }
            others.append("\(damage): \(found ?? "accepted"), not \(expected ?? "accepted")")
        }
        let shapes: [DeviceShape] = [
            .iOS14, .beforeTwentySeven, .iOS27(category: .appStore, bundleVersion: "1"),
            .macOS27(category: .developerID, bundleVersion: nil),
        ]
        for shape in shapes {
            let device = SoftwareDevice(
                authority: authority,
                appID: appID,
                environment: .production,
                shape: shape
            )
            var key = device.makeKey()
            compare("no damage", attestation(key, nil), nil)
            for damage in AttestationDamage.allCases {
                compare(damage.rawValue, attestation(key, damage), damage.refusal.rawValue)
            }
            for damage in ReceiptDamage.allCases {
                compare(damage.rawValue, receipt(key, damage), damage.refusal.rawValue)
            }
            for damage in AssertionDamage.allCases {
                // The counter before is one that can be repeated, and not the first.
                for _ in 0..<2 { _ = key.assertion(clientDataHash: hash) }
                let stored = key.counter
                let object = key.assertion(clientDataHash: hash, damage: damage)
                let found = assertion(object, of: key, after: stored)
                compare(damage.rawValue, found, damage.refusal?.rawValue)
            }
        }
        return (count, others)
    }

    private func attestation(_ key: SoftwareKey, _ damage: AttestationDamage?) -> String? {
        let object = key.attestation(clientDataHash: hash, at: now, damage: damage)
        let app = ExpectedApp(
            id: appID,
            environments: [.production],
            isMacOS: false,
            builds: .any
        )
        do throws(AttestationRefusal) {
            _ = try UnverifiedAttestation(bytes: object).verified(
                clientDataHash: hash,
                keyID: key.keyID,
                apps: [app],
                roots: [authority.root],
                at: now
            )
            return nil
        } catch {
            return error.reason.rawValue
        }
    }

    private func receipt(_ key: SoftwareKey, _ damage: ReceiptDamage) -> String? {
        let object = key.receipt(
            .refreshed(riskMetric: 3),
            clientDataHash: hash,
            at: now,
            damage: damage
        )
        do throws(ReceiptRefusal) {
            _ = try UnverifiedReceipt(bytes: object).verified(
                appIDs: [appID],
                key: key.publicKey,
                roots: [authority.root],
                freshness: UnverifiedReceipt.Freshness(now: now, secondsMax: 300)
            )
            return nil
        } catch {
            return error.reason.rawValue
        }
    }

    private func assertion(
        _ object: [UInt8],
        of key: SoftwareKey,
        after stored: SignCounter
    ) -> String? {
        do throws(AssertionRefusal) {
            _ = try UnverifiedAssertion(bytes: object).verified(
                clientDataHash: hash,
                key: key.publicKey,
                app: AppIDHash(appID: appID),
                after: stored
            )
            return nil
        } catch {
            return error.reason.rawValue
        }
    }
}
