import Cryptography
import Encodings
import Expectations
import Testing

@Suite struct CertificateTests {
    private static let now = UnixTime(seconds: 1_800_000_000)
    private let rootKey = ECPrivateKey(generating: .p384)
    private let key = ECPrivateKey(generating: .p256)

    private func builder(_ name: String, isAuthority: Bool, days: Int64 = 1) -> CertificateBuilder {
        CertificateBuilder(
            subject: .init(commonName: name, organization: "Example", organizationalUnit: "Tests"),
            serial: 0x0102_0304,
            validity: Self.now.advanced(
                bySeconds: -86_400
            )...Self.now.advanced(bySeconds: days * 86_400),
            isAuthority: isAuthority,
            extensions: [.init(oid: OID("1.2.3.4"), isCritical: false, value: [0x04, 0x01, 0x2A])]
        )
    }

    private func reason(_ body: () throws -> Void) -> X509CertificateError.Reason? {
        do {
            try body()
            return nil
        } catch {
            return (error as? X509CertificateError)?.reason
        }
    }

    @Test func `a certificate says what was put into it`() throws {
        let root = builder("Root", isAuthority: true).selfSigned(by: rootKey)
        let leaf = builder("Leaf ü", isAuthority: false).signed(for: key, by: rootKey, issuer: root)
        let read = try X509Certificate(der: leaf.der)
        expectEqual(read.der, leaf.der)
        expectEqual(read.subject[.commonName], "Leaf ü")
        expectEqual(read.subject[.organization], "Example")
        expectEqual(read.subject[.organizationalUnit], "Tests")
        expectEqual(read.notBefore, Self.now.advanced(bySeconds: -86_400))
        expectEqual(read.notAfter, Self.now.advanced(bySeconds: 86_400))
        expectEqual(read.p256PublicKey?.x963, key.x963)
        expectEqual(root.p256PublicKey, nil)
        expectEqual(read.extensionBytes(OID("1.2.3.4")), [0x04, 0x01, 0x2A])
        expectEqual(read.extensionBytes(OID("1.2.3.5")), nil)
        let both = try X509Certificate.certificates(pem: leaf.pem + root.pem)
        expectEqual(both.map(\.der), [leaf.der, root.der])
    }

    @Test func `an extension that is there twice is not there`() {
        var twice = builder("Root", isAuthority: true)
        twice.extensions += twice.extensions
        expectEqual(twice.selfSigned(by: rootKey).extensionBytes(OID("1.2.3.4")), nil)
    }

    @Test func `dates of both centuries and forms are read`() {
        var long = builder("Root", isAuthority: true)
        long.validity = UnixTime(seconds: -600_000_000)...UnixTime(seconds: 4_000_000_000)
        let root = long.selfSigned(by: rootKey)
        expectEqual(root.notBefore, long.validity.lowerBound)
        expectEqual(root.notAfter, long.validity.upperBound)
    }

    @Test func `a path leads to the given anchors and to no others`() throws {
        let root = builder("Root", isAuthority: true).selfSigned(by: rootKey)
        let middleKey = ECPrivateKey(generating: .p384)
        let middle = builder("Middle", isAuthority: true)
            .signed(for: middleKey, by: rootKey, issuer: root)
        let leaf = builder("Leaf", isAuthority: false).signed(
            for: key,
            by: middleKey,
            issuer: middle
        )
        let path = try leaf.path(through: [middle], to: [root], at: Self.now)
        expectEqual(path.map(\.der), [leaf.der, middle.der, root.der])

        expectEqual(reason { _ = try leaf.path(through: [], to: [root], at: Self.now) }, .untrusted)
        expectEqual(
            reason { _ = try leaf.path(through: [middle], to: [], at: Self.now) },
            .untrusted
        )
        // Sent along is not trusted.
        expectEqual(
            reason { _ = try leaf.path(through: [middle, root], to: [], at: Self.now) },
            .untrusted
        )
        // The same names and another key.
        let namesake = builder("Root", isAuthority: true).selfSigned(
            by: ECPrivateKey(generating: .p384)
        )
        expectEqual(
            reason { _ = try leaf.path(through: [middle], to: [namesake], at: Self.now) },
            .untrusted
        )
        // An anchor that is no root.
        expectEqual(
            reason { _ = try leaf.path(through: [], to: [middle], at: Self.now) },
            .untrusted
        )
    }

    @Test func `expired, not yet valid and untrusted are told apart`() {
        let root = builder("Root", isAuthority: true).selfSigned(by: rootKey)
        let leaf = builder("Leaf", isAuthority: false).signed(for: key, by: rootKey, issuer: root)
        let late = leaf.notAfter.advanced(bySeconds: 1)
        let early = leaf.notBefore.advanced(bySeconds: -1)
        expectEqual(reason { _ = try leaf.path(through: [], to: [root], at: leaf.notAfter) }, nil)
        expectEqual(reason { _ = try leaf.path(through: [], to: [root], at: late) }, .expired)
        expectEqual(reason { _ = try leaf.path(through: [], to: [root], at: early) }, .notYetValid)
        expectEqual(reason { _ = try leaf.path(through: [], to: [], at: late) }, .untrusted)
    }

    @Test func `no truncation and no flipped bit traps, and none leads to the anchor`() {
        let root = builder("Root", isAuthority: true).selfSigned(by: rootKey)
        let leaf = builder("Leaf", isAuthority: false).signed(for: key, by: rootKey, issuer: root)
        for count in 0..<leaf.der.count {
            let part = Array(leaf.der[..<count])
            expectEqual(reason { _ = try X509Certificate(der: part) }, .malformed)
        }
        expectEqual(reason { _ = try X509Certificate(der: leaf.der + [0]) }, .malformed)
        for index in leaf.der.indices {
            var der = leaf.der
            der[index] ^= 1 << UInt8(index % 8)
            let reason = reason {
                _ = try X509Certificate(der: der).path(through: [], to: [root], at: Self.now)
            }
            #expect(reason != nil, "byte \(index)")
        }
    }

    @Test func `a malformed certificate says what is wrong, and where`() {
        let der = builder("Root", isAuthority: true).selfSigned(by: rootKey).der
        func detail(_ der: [UInt8]) -> String? {
            do throws(X509CertificateError) {
                _ = try X509Certificate(der: der)
                return nil
            } catch {
                return error.detail
            }
        }
        let start = "not one DER certificate of RFC 5280: "
        expectEqual(detail(der + [0]), start + "trailingBytes at \(der.count)")
        expectEqual(detail([0x31, 0x00]), start + "unexpectedTag at 0")
        expectEqual(detail(der.dropLast()), start + "truncated at 0")
        let long = [UInt8](repeating: 0x30, count: X509Certificate.bytesMax + 1)
        expectEqual(detail(long), "\(long.count) bytes are too many")
    }

    @Test func `text that is no PEM certificate is malformed`() {
        for text in ["", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            expectEqual(reason { _ = try X509Certificate.certificates(pem: text) }, .malformed)
        }
    }
}
