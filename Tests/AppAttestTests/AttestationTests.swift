import Cryptography
import Encodings
import Expectations
import Testing

@testable import AppAttest

@Suite struct AttestationTests {
    private let authority = TestAuthority()

    private func app(
        id: String = TestAuthority.appID,
        isMacOS: Bool = false,
        builds: BuildPolicy = .any
    ) -> ExpectedApp {
        ExpectedApp(id: id, environments: [.production], isMacOS: isMacOS, builds: builds)
    }

    private func reason(
        apps: [ExpectedApp]? = nil,
        authority: TestAuthority? = nil,
        at time: UnixTime = TestAuthority.now,
        _ change: (inout TestAuthority.Plan) -> Void
    ) -> AttestationRefusal.Reason? {
        let authority = authority ?? self.authority
        var plan = TestAuthority.Plan()
        change(&plan)
        let object = authority.attestation(plan)
        let clientDataHash = TestAuthority.Plan().clientDataHash
        return AttestationRefusal.reason {
            _ = try UnverifiedAttestation(bytes: object).verified(
                clientDataHash: clientDataHash.span,
                keyID: KeyID(of: authority.device.publicKey),
                apps: apps ?? [app()],
                roots: [authority.root],
                at: time
            )
        }
    }

    @Test func `an object of a given root is accepted, of another refused`() throws {
        expectEqual(reason { _ in }, nil)
        let object = authority.attestation(.init())
        expectEqual(
            AttestationRefusal.reason {
                _ = try UnverifiedAttestation(bytes: object).verified(
                    clientDataHash: TestAuthority.Plan().clientDataHash.span,
                    keyID: KeyID(of: authority.device.publicKey),
                    apps: [app()],
                    roots: [AppleRoots.appAttestation, TestAuthority().root],
                    at: TestAuthority.now
                )
            },
            .certificateUntrusted
        )
    }

    @Test func `steps 5 to 9 each refuse what only they can see`() {
        expectEqual(reason { $0.appID = "ABCDE12345.com.example.other" }, .appMismatch)
        expectEqual(reason { $0.counter = [0, 0, 0, 1] }, .counterNotZero)
        expectEqual(
            reason { $0.aaguid = AttestationEnvironment.development.aaguid },
            .environmentMismatch
        )
        expectEqual(reason { $0.aaguid = Array("appattestsandbox".utf8) }, .environmentMismatch)
        expectEqual(reason { $0.credentialID = [UInt8](repeating: 7, count: 32) }, .keyIDMismatch)
        let other = AttestedAuthenticatorData.coseKey(of: P256PrivateKey().publicKey)
        expectEqual(reason { $0.coseKey = other }, .keyIDMismatch)
        expectEqual(reason { $0.credentialLength = [0, 31] }, .malformed)
    }

    @Test func `the first step that fails is the one reported`() {
        expectEqual(
            reason {
                $0.appID = "ABCDE12345.com.example.other"
                $0.counter = [0, 0, 0, 1]
                $0.clientDataHash = [9]
            },
            .nonceMismatch
        )
        expectEqual(
            reason {
                $0.counter = [0, 0, 0, 1]
                $0.aaguid = []
                $0.trailing = [UInt8](repeating: 0, count: 16)
            },
            .malformed
        )
        expectEqual(
            reason {
                $0.counter = [0, 0, 0, 1]
                $0.aaguid = AttestationEnvironment.development.aaguid
            },
            .counterNotZero
        )
    }

    @Test func `the nonce is read in its one form only`() {
        expectEqual(reason { $0.nonceTag = 2 }, .nonceMismatch)
        expectEqual(reason { $0.nonce = [] }, .nonceMismatch)
    }

    @Test func `flags decide nothing`() {
        for flags: UInt8 in [0x00, 0x40, 0x80, 0xC0, 0xFF] {
            expectEqual(reason { $0.flags = flags }, nil)
            expectEqual(
                reason {
                    $0.flags = flags
                    $0.trailing = [0xA0]
                },
                nil
            )
            expectEqual(
                reason {
                    $0.flags = flags
                    $0.trailing = [0xA0, 0xA0]
                },
                .malformed
            )
        }
    }

    @Test func `the access control list counts where the platform or the app is macOS`() {
        let right = UnverifiedAttestation.macOSAccessControl
        let mac = [app(isMacOS: true)]
        expectEqual(reason { $0.accessControl = [1] }, nil)
        expectEqual(
            reason {
                $0.accessControl = [1]
                $0.platform = "iphoneos"
            },
            nil
        )
        expectEqual(
            reason {
                $0.accessControl = [1]
                $0.platform = "macosx"
            },
            .accessControlMismatch
        )
        expectEqual(reason { $0.platform = "macosx" }, .accessControlMismatch)
        expectEqual(
            reason {
                $0.accessControl = right
                $0.platform = "macosx"
            },
            nil
        )
        expectEqual(reason(apps: mac) { _ in }, .accessControlMismatch)
        expectEqual(reason(apps: mac) { $0.accessControl = right }, nil)
    }

    @Test func `each of several apps has its own conditions`() {
        let strict = BuildPolicy(
            categories: [.appStore],
            acceptsAbsentCategory: false,
            bundleVersions: nil,
            acceptsAbsentBundleVersion: true
        )
        let apps = [app(id: "A.one", builds: strict), app()]
        expectEqual(reason(apps: apps) { _ in }, nil)
        expectEqual(reason(apps: apps) { $0.appID = "A.one" }, .categoryRefused)
        expectEqual(reason(apps: []) { _ in }, .appMismatch)
    }

    @Test func `categories are little-endian, and versions compared as text`() {
        func extensions(_ category: [UInt8], _ version: String) -> [UInt8] {
            CBORValue.map([
                .init(.text("apple_bundle_version_01"), .text(version)),
                .init(.text("apple_validation_category_01"), .bytes(category)),
            ]).encoded
        }
        let policy = BuildPolicy(
            categories: [.testFlight, .appStore],
            acceptsAbsentCategory: false,
            bundleVersions: ["1.0"],
            acceptsAbsentBundleVersion: false
        )
        let apps = [app(builds: policy)]
        expectEqual(reason(apps: apps) { $0.trailing = extensions([4, 0, 0, 0], "1.0") }, nil)
        expectEqual(
            reason(apps: apps) { $0.trailing = extensions([0, 0, 0, 4], "1.0") },
            .categoryRefused
        )
        expectEqual(
            reason(apps: apps) { $0.trailing = extensions([3, 0, 0, 0], "1.0") },
            .categoryRefused
        )
        expectEqual(
            reason(apps: apps) { $0.trailing = extensions([2, 0, 0, 0], "1") },
            .versionRefused
        )
        expectEqual(reason(apps: apps) { _ in }, .categoryRefused)
    }

    @Test func `an expired or a false intermediate is told from an unknown one`() {
        let expired = TestAuthority(intermediateNotAfter: TestAuthority.now.advanced(bySeconds: -1))
        expectEqual(reason(authority: expired) { _ in }, .certificateExpired)
        let last = TestAuthority(intermediateNotAfter: TestAuthority.now)
        expectEqual(reason(authority: last) { _ in }, nil)
        let noAuthority = TestAuthority(intermediateIsAuthority: false)
        expectEqual(reason(authority: noAuthority) { _ in }, .certificateUntrusted)
        expectEqual(reason { $0.criticalExtension = OID("1.2.3.4") }, .certificateUntrusted)
    }

    @Test func `fractions of the last second are within it`() {
        let end = TestAuthority.now.advanced(bySeconds: 3_600)
        let half = UnixTime(seconds: end.seconds, nanoseconds: 500_000_000)
        expectEqual(reason(at: half) { _ in }, nil)
        expectEqual(reason(at: end.advanced(bySeconds: 1)) { _ in }, .certificateExpired)
    }
}
