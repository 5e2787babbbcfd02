import AppAttest
import Cryptography
import SoftwareAuthenticator

/// An authority, a device of a shape and a key, with what a verifier expects of them.
struct Bench {
    static let now = UnixTime(seconds: 1_800_000_000)
    static let appID = "ABCDE12345.com.example.shop"
    static let hash = SHA256.digest(of: [1, 2, 3]).array
    static let authority = SoftwareAuthority(seed: [7], madeAt: now)

    static let shapes: [DeviceShape] = [
        .beforeTwentySeven,
        .iOS27(category: .appStore, bundleVersion: "1314"),
        .macOS27(category: .developerID, bundleVersion: nil),
    ]

    let device: SoftwareDevice
    var key: SoftwareKey

    init(
        _ shape: DeviceShape,
        environment: AttestationEnvironment = .production,
        authority: SoftwareAuthority = Bench.authority
    ) {
        device = SoftwareDevice(
            authority: authority,
            appID: Self.appID,
            environment: environment,
            shape: shape
        )
        key = device.makeKey()
    }

    func attestationRefusal(
        _ object: [UInt8],
        hash: [UInt8] = Bench.hash,
        roots: [X509Certificate] = [Bench.authority.root],
        at time: UnixTime = Bench.now
    ) -> AttestationRefusal.Reason? {
        do throws(AttestationRefusal) {
            _ = try verifiedAttestation(object, hash: hash, roots: roots, at: time)
            return nil
        } catch {
            return error.reason
        }
    }

    func verifiedAttestation(
        _ object: [UInt8],
        hash: [UInt8] = Bench.hash,
        roots: [X509Certificate] = [Bench.authority.root],
        at time: UnixTime = Bench.now
    ) throws(AttestationRefusal) -> VerifiedAttestation {
        let app = ExpectedApp(
            id: Self.appID,
            environments: [device.environment],
            isMacOS: false,
            builds: .any
        )
        return try UnverifiedAttestation(bytes: object).verified(
            clientDataHash: hash.span,
            keyID: key.keyID,
            apps: [app],
            roots: roots,
            at: time
        )
    }

    func assertionRefusal(
        _ object: [UInt8],
        hash: [UInt8] = Bench.hash,
        after stored: SignCounter
    ) -> AssertionRefusal.Reason? {
        do throws(AssertionRefusal) {
            _ = try UnverifiedAssertion(bytes: object).verified(
                clientDataHash: hash.span,
                key: key.publicKey,
                app: AppIDHash(appID: Self.appID),
                after: stored
            )
            return nil
        } catch {
            return error.reason
        }
    }

    func receiptRefusal(
        _ object: [UInt8],
        roots: [X509Certificate] = [Bench.authority.root],
        isFresh: Bool = true
    ) -> ReceiptRefusal.Reason? {
        do throws(ReceiptRefusal) {
            _ = try UnverifiedReceipt(bytes: object).verified(
                appIDs: [Self.appID],
                key: key.publicKey,
                roots: roots,
                freshness: isFresh
                    ? UnverifiedReceipt.Freshness(now: Self.now, secondsMax: 300) : nil
            )
            return nil
        } catch {
            return error.reason
        }
    }
}
