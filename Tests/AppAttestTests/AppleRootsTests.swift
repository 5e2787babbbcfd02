import Cryptography
import Encodings
import Expectations
import TestSupport
import Testing

@testable import AppAttest

@Suite struct AppleRootsTests {
    @Test func `the pinned roots have the fingerprints that Apple publishes`() {
        expectEqual(
            Hex.text(AppleRoots.appAttestation.fingerprint.array),
            "1cb9823ba28ba6ad2d33a006941de2ae4f513ef1d4e831b9f7e0fa7b6242c932"
        )
        expectEqual(
            Hex.text(AppleRoots.rootG3.fingerprint.array),
            "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179"
        )
    }

    @Test func `the pinned roots are signed by themselves and live until 2039 and 2045`() throws {
        for root in [AppleRoots.appAttestation, AppleRoots.rootG3] {
            let path = try root.path(
                through: [],
                to: [root],
                at: try moment("2026-01-01T00:00:00Z")
            )
            expectEqual(path.map(\.der), [root.der])
        }
        expectEqual(AppleRoots.appAttestation.notAfter.iso8601, "2045-03-15T00:00:00Z")
        expectEqual(AppleRoots.rootG3.notAfter.iso8601, "2039-04-30T18:19:06Z")
    }

    @Test func `the access control list of macOS is the one that Apple prints`() throws {
        let printed =
            "MEAMAjExMDowCQwCb2uhAwEB/zAJDAJvYaEDAQH/MAsMBG9kZWyhAwEB"
            + "/zAVDARvc2duoAYMBHJzZWMwBaYDAgEB"
        try expectEqual(bytes(printed), UnverifiedAttestation.macOSAccessControl)
    }
}
