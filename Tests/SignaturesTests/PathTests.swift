import Cryptography
import Encodings
import Expectations
import Testing

@testable import Signatures

/// Paths that no genuine device shows: wrong in one place, signed in all.
@Suite struct PathTests {
    private let rootKey = ECPrivateKey(generating: .p384)
    private let middleKey = ECPrivateKey(generating: .p256)
    private let leafKey = ECPrivateKey(generating: .p256)
    private let keyIdentifier = [UInt8](repeating: 7, count: 20)

    private func builder(_ name: String, isAuthority: Bool = true) -> CertificateBuilder {
        CertificateBuilder(
            subject: .init(commonName: name),
            serial: 5,
            validity: UnixTime(seconds: 0)...UnixTime(seconds: 4_000_000_000),
            isAuthority: isAuthority
        )
    }

    private func entry(
        _ oid: String,
        isCritical: Bool = false,
        _ value: [UInt8]
    ) -> CertificateBuilder.Extension {
        CertificateBuilder.Extension(oid: OID(oid), isCritical: isCritical, value: value)
    }

    /// What OpenSSL and our reader say of leaf, intermediate and root, each changed before it is
    /// signed. A path has their places.
    private func verdicts(
        root changeRoot: (inout CertificateBuilder) -> Void = { _ in },
        middle changeMiddle: (inout CertificateBuilder) -> Void = { _ in },
        leaf changeLeaf: (inout CertificateBuilder) -> Void = { _ in }
    ) -> Set<Verdict> {
        var (root, middle) = (builder("Root"), builder("Middle"))
        var leaf = builder("Leaf", isAuthority: false)
        changeRoot(&root)
        changeMiddle(&middle)
        changeLeaf(&leaf)
        let anchor = root.selfSigned(by: rootKey)
        let issuer = middle.signed(for: middleKey, by: rootKey, issuer: anchor)
        let end = leaf.signed(for: leafKey, by: middleKey, issuer: issuer)
        let ders = [end.der, issuer.der, anchor.der]
        return Verdict.both(ders[0], [ders[1]], [ders[2]], named: ders)
    }

    private let good: Set<Verdict> = [.path([[0], [1], [2]])]

    @Test func `keys on P-256 and P-384 sign a path`() {
        expectEqual(verdicts(), good)
    }

    @Test func `an issuer is an authority that may sign certificates`() {
        // keyCertSign is the sixth bit.
        let signing: [UInt8] = [0x03, 0x02, 0x01, 0x06]
        let notSigning: [UInt8] = [0x03, 0x02, 0x07, 0x80]
        expectEqual(verdicts(middle: { $0.isAuthority = false }), [.untrusted])
        expectEqual(verdicts(root: { $0.isAuthority = false }), [.untrusted])
        expectEqual(verdicts(middle: { $0.keyUsage = signing }), good)
        expectEqual(verdicts(middle: { $0.keyUsage = notSigning }), [.untrusted])
        expectEqual(verdicts(root: { $0.keyUsage = notSigning }), [.untrusted])
        // Malformed, without a bit, and with bits that are marked as unused.
        expectEqual(verdicts(middle: { $0.keyUsage = [0x03, 0x02, 0x01, 0x00] }), [.untrusted])
        expectEqual(verdicts(middle: { $0.keyUsage = [0x03, 0x02, 0x05, 0x06] }), [.untrusted])
        expectEqual(verdicts(leaf: { $0.basicConstraints = [0x30, 0x01] }), [.untrusted])
    }

    @Test(arguments: [0, 1, 2] as [UInt32])
    func `the root's path length counts the intermediates`(length: UInt32) {
        let constraints = DEREncoder.sequence([
            DEREncoder.element(.boolean, [0xFF]), DEREncoder.integer(length),
        ])
        let isLongEnough = length > 0
        expectEqual(
            verdicts(root: { $0.basicConstraints = constraints }),
            isLongEnough ? good : [.untrusted]
        )
        // The leaf is none.
        expectEqual(verdicts(middle: { $0.basicConstraints = constraints }), good)
    }

    @Test func `a critical extension that is not known is refused at each place`() {
        let unknown = entry("1.2.3.4", isCritical: true, [0x05, 0x00])
        expectEqual(verdicts(root: { $0.extensions = [unknown] }), [.untrusted])
        expectEqual(verdicts(middle: { $0.extensions = [unknown] }), [.untrusted])
        expectEqual(verdicts(leaf: { $0.extensions = [unknown] }), [.untrusted])
        let harmless = entry("1.2.3.4", [0x05, 0x00])
        expectEqual(verdicts(middle: { $0.extensions = [harmless] }), good)
    }

    /// OpenSSL takes one that it does not know twice (RFC 5280 §4.2; found by x509-limbo).
    @Test func `an extension that is there twice is refused at each place`() {
        let twice = [entry("1.2.3", [0x05, 0x00]), entry("1.2.3", [0x05, 0x00])]
        expectEqual(verdicts(leaf: { $0.extensions += twice }), good.union([.untrusted]))
        expectEqual(verdicts(middle: { $0.extensions += twice }), good.union([.untrusted]))
        expectEqual(verdicts(root: { $0.extensions += twice }), good.union([.untrusted]))
        expectEqual(verdicts(leaf: { $0.extensions += [twice[0]] }), good)
    }

    @Test func `the key identifier and the serial number of the issuer are those that it has`() {
        let own = entry("2.5.29.14", DEREncoder.octetString(keyIdentifier))
        func named(_ identifier: [UInt8], serial: UInt8? = nil) -> CertificateBuilder.Extension {
            let parts = [
                DEREncoder.element(DERTag(bits: 0x80, number: 0), identifier),
                serial.map { DEREncoder.element(DERTag(bits: 0x80, number: 2), [$0]) } ?? [],
            ]
            return entry("2.5.29.35", DEREncoder.sequence(parts))
        }
        func both(_ authority: CertificateBuilder.Extension) -> Set<Verdict> {
            verdicts(middle: { $0.extensions = [own] }, leaf: { $0.extensions = [authority] })
        }
        expectEqual(both(named(keyIdentifier)), good)
        expectEqual(both(named(keyIdentifier.dropLast() + [8])), [.untrusted])
        expectEqual(both(entry("2.5.29.35", [0x05, 0x00])), [.untrusted])
        // An issuer that has none is not asked for one.
        expectEqual(verdicts(leaf: { $0.extensions = [named([1])] }), good)
    }

    @Test func `a leaf whose key is no point on its curve has no path`() {
        let anchor = builder("Root").selfSigned(by: rootKey)
        let off = [4] + [UInt8](repeating: 1, count: 64)
        let leaf = builder("Leaf", isAuthority: false)
            .signed(for: off, on: .p256, by: rootKey, issuer: anchor)
        expectEqual(Verdict.both(leaf.der, [], [anchor.der]), [.untrusted])
    }

    @Test func `names are equal when types and texts are, whatever kind of string has a text`() {
        let anchor = builder("Root").selfSigned(by: rootKey)
        let leaf = builder("Leaf", isAuthority: false)
            .signed(for: leafKey, by: rootKey, issuer: renamed(anchor, tag: 0x13))
        expectEqual(Verdict.both(leaf.der, [], [anchor.der]), [.path([leaf.der, anchor.der])])
        let other = builder("Leaf", isAuthority: false)
            .signed(for: leafKey, by: rootKey, issuer: builder("Roots").selfSigned(by: rootKey))
        expectEqual(Verdict.both(other.der, [], [anchor.der]), [.untrusted])
    }

    /// The certificate with its name in another kind of string, so that its signature is wrong.
    private func renamed(_ certificate: X509Certificate, tag: UInt8) -> X509Certificate {
        var der = certificate.der
        // The UTF8String that says "Root".
        let text = [UInt8](arrayLiteral: 0x0C, 4) + Array("Root".utf8)
        for place in der.indices where der[place...].starts(with: text) { der[place] = tag }
        guard let renamed = try? X509Certificate(der: der) else {
            preconditionFailure("PathTests: a certificate with a PrintableString")
        }
        return renamed
    }

    @Test func `a signature of another key, curve or certificate is none`() {
        let anchor = builder("Root").selfSigned(by: rootKey)
        let namesake = builder("Root").selfSigned(by: ECPrivateKey(generating: .p384))
        let leaf = builder("Leaf", isAuthority: false)
            .signed(for: leafKey, by: rootKey, issuer: anchor)
        expectEqual(Verdict.both(leaf.der, [], [anchor.der]), [.path([leaf.der, anchor.der])])
        expectEqual(Verdict.both(leaf.der, [], [namesake.der]), [.untrusted])
        let small = builder("Root").selfSigned(by: middleKey)
        expectEqual(Verdict.both(leaf.der, [], [small.der]), [.untrusted])
        // A root alone is trusted when it is the anchor.
        expectEqual(Verdict.both(anchor.der, [], [anchor.der]), [.path([anchor.der])])
        expectEqual(Verdict.both(namesake.der, [anchor.der], [anchor.der]), [.untrusted])
    }

    @Test func `limits of names are refused where they are not judged`() {
        // One permitted DNS name, which OpenSSL judges.
        let limits = DEREncoder.sequence([
            DEREncoder.element(
                .explicit(0),
                DEREncoder.sequence([
                    DEREncoder.element(DERTag(bits: 0x80, number: 2), Array("example.com".utf8))
                ])
            )
        ])
        let verdicts = verdicts(middle: { $0.extensions = [entry("2.5.29.30", limits)] })
        #expect(verdicts.contains(.untrusted))
    }
}
