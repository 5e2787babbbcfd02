import AppAttest
import Cryptography
import Encodings
import Expectations
import TestSupport
import Testing

@testable import Signatures

/// OpenSSL reads the same certificates and messages as `X509Certificate` and `SignedMessage`: all
/// vectors, and each with damage.
@Suite struct ReadingTests {
    private static let attestations = SharedVectors.attestations
    private static let messages: [Message] =
        SharedVectors.receipts.compactMap { Message($0.id, $0.receiptB64, of: $0) }
        + attestations.compactMap { vector in
            let attestation = Base64.decode(vector.attestationB64)
                .flatMap { try? UnverifiedAttestation(bytes: $0) }
            return attestation.map {
                Message(id: vector.id, ber: $0.receipt, root: root(of: vector, AppleRoots.rootG3))
            }
        }

    struct Message: CustomStringConvertible, Sendable {
        let id: String
        let ber: [UInt8]
        let root: [UInt8]

        var description: String { id }

        init(id: String, ber: [UInt8], root: [UInt8]) {
            (self.id, self.ber, self.root) = (id, ber, root)
        }

        init?(_ id: String, _ base64: String, of vector: some SharedVector) {
            guard let ber = Base64.decode(base64) else { return nil }
            self.init(id: id, ber: ber, root: ReadingTests.root(of: vector, AppleRoots.rootG3))
        }
    }

    private static func root(of vector: some SharedVector, _ genuine: X509Certificate) -> [UInt8] {
        (vector.isSoftware ? SharedVectors.softwareRoot : genuine).der
    }

    /// The certificates of an attestation and its root: leaf, intermediate, root.
    private func chain(_ vector: AttestationVector) throws -> [[UInt8]] {
        let attestation = try UnverifiedAttestation(bytes: try bytes(vector.attestationB64))
        return [
            attestation.leaf.der, attestation.intermediate.der,
            Self.root(of: vector, AppleRoots.appAttestation),
        ]
    }

    @Test(arguments: attestations)
    func `both readers find the same in each certificate`(vector: AttestationVector) throws {
        let oids = ["1.2.840.113635.100.8.2", "1.2.840.113635.100.8.7", "2.5.29.19", "1.2.3"]
        for der in try chain(vector) {
            let one = try #require(OpenSSLCertificate(bytes: der))
            let other = try X509Certificate(der: der)
            #expect(one.validity == (other.notBefore, other.notAfter))
            expectEqual(one.p256PublicKey, other.p256PublicKey)
            for oid in oids.map({ OID($0) }) {
                expectEqual(one.extensionBytes(oid), other.extensionBytes(oid))
            }
            for field in [.commonName, .organization, .organizationalUnit] as [OID] {
                expectEqual(one.subject(field), other.subject[field])
            }
        }
    }

    @Test(arguments: attestations)
    func `both readers find the same path, and none where there is none`(
        vector: AttestationVector
    ) throws {
        let chain = try chain(vector)
        let (leaf, middle, root) = (chain[0], chain[1], chain[2])
        let good = Verdict.path([leaf, middle, root])
        expectEqual(Verdict.both(leaf, [middle], [root]), [good])
        expectEqual(Verdict.both(leaf, [middle], [AppleRoots.rootG3.der, root]), [good])
        for (start, others, anchors) in [
            (leaf, [], [root]), (leaf, [middle], []), (leaf, [middle, root], []),
            (leaf, [leaf], [root]), (leaf, [root], [root]), (leaf, [middle], [middle]),
            (leaf, [middle], [leaf]), (leaf, [middle], [AppleRoots.rootG3.der]),
        ] {
            expectEqual(Verdict.both(start, others, anchors), [.untrusted])
        }
        // Good paths of other ends than an attestation has, which only counts its certificates.
        for (start, others) in [(middle, [leaf]), (middle, [middle]), (root, [middle])] {
            let verdicts = Verdict.both(start, others, [root])
            #expect(verdicts.count == 1 && verdicts != [.untrusted])
        }
    }

    /// A certificate with a bit turned over is malformed or untrusted; which of the two depends on
    /// what the reader looks at first.
    @Test(arguments: attestations)
    func `both readers refuse a path with a byte damaged`(vector: AttestationVector) throws {
        let chain = try chain(vector)
        for place in 0..<2 {
            for index in stride(from: place, to: chain[place].count, by: 47) {
                var damaged = chain
                damaged[place][index] ^= 1 << UInt8(index % 8)
                let verdicts = Verdict.both(damaged[0], [damaged[1]], [damaged[2]])
                #expect(verdicts.isSubset(of: [.malformed, .untrusted]), "\(place) \(index)")
            }
            for count in stride(from: 0, to: chain[place].count, by: 37) {
                let short = Array(chain[place][..<count])
                expectEqual(Verdict.both(short, [], []), [.malformed])
            }
            expectEqual(Verdict.both(chain[place] + [0], [], []), [.malformed])
        }
    }

    @Test(arguments: messages)
    func `both readers find the same in each message`(message: Message) throws {
        let one = try #require(OpenSSLMessage.parts(bytes: message.ber))
        expectEqual(one, MessageSummary(try SignedMessage(ber: message.ber.span)))
        expectEqual(Verdict.both(message: message.ber, to: message.root).count, 1)
    }

    /// Not every byte is signed: algorithms that are named twice, a root beside the path. One
    /// reader may refuse what the other does not read. What either accepts is the same content by
    /// the same signer. In a sweep over receipts the two said different things in 349 cases, all of
    /// them in bytes that no signature covers.
    @Test func `whatever part of a message is damaged, a reader finds what was signed, or nothing`()
        throws
    {
        let message = try #require(Self.messages.min { $0.ber.count < $1.ber.count })
        let good = Verdict.both(message: message.ber, to: message.root)
        expectEqual(good.count, 1)
        // A third of the bytes: part of each field that has more than two with its tag and length.
        for index in stride(from: 1, to: message.ber.count, by: 3) {
            var damaged = message.ber
            damaged[index] ^= 1 << UInt8(index % 8)
            let verdicts = Verdict.both(message: damaged, to: message.root)
            #expect(verdicts.isSubset(of: good.union([.malformed, .untrusted])), "\(index)")
        }
    }

    /// The same for some bytes of each message, and for its beginnings.
    @Test(arguments: messages)
    func `neither reader takes a damaged message for another one`(message: Message) throws {
        let good = Verdict.both(message: message.ber, to: message.root)
        for index in stride(from: message.ber.count % 83, to: message.ber.count, by: 83) {
            var damaged = message.ber
            damaged[index] ^= 1 << UInt8(index % 8)
            let verdicts = Verdict.both(message: damaged, to: message.root)
            #expect(
                verdicts.isSubset(of: good.union([.malformed, .untrusted])),
                "\(index): \(verdicts)"
            )
        }
        for count in stride(from: 0, to: message.ber.count, by: 73) {
            let short = Array(message.ber[..<count])
            expectEqual(Verdict.both(message: short, to: message.root), [.malformed])
        }
        expectEqual(Verdict.both(message: message.ber + [0], to: message.root), [.malformed])
    }
}

/// What a reader says.
enum Verdict: Hashable {
    case malformed
    case untrusted
    /// The certificates in DER.
    case path([[UInt8]])
    case signed(content: [UInt8], by: [UInt8])

    /// What OpenSSL and our reader say of a path, whatever its dates; one verdict when they agree.
    static func both(_ leaf: [UInt8], _ others: [[UInt8]], _ anchors: [[UInt8]]) -> Set<Verdict> {
        [openSSL(leaf, others, anchors), ours(leaf, others, anchors)]
    }

    /// The same with the place among `ders` for each certificate of a path.
    static func both(
        _ leaf: [UInt8],
        _ others: [[UInt8]],
        _ anchors: [[UInt8]],
        named ders: [[UInt8]]
    ) -> Set<Verdict> {
        Set(
            both(leaf, others, anchors).map { verdict in
                guard case .path(let path) = verdict else { return verdict }
                return .path(path.map { der in [UInt8(ders.firstIndex(of: der) ?? 255)] })
            }
        )
    }

    /// What both say of a message that a signer under the anchor has signed.
    static func both(message: [UInt8], to anchor: [UInt8]) -> Set<Verdict> {
        let theirs = OpenSSLMessage.parts(bytes: message)
        let own = try? MessageSummary(SignedMessage(ber: message.span))
        return [
            of(theirs, anchor, openSSL) {
                OpenSSLCertificate(bytes: $0)?.isValidSignature($1, digest: $2)
            },
            of(own, anchor, ours) {
                (try? X509Certificate(der: $0))?.isValidSignature($1, digest: $2)
            },
        ]
    }

    private static func of(
        _ parts: MessageSummary?,
        _ anchor: [UInt8],
        _ path: ([UInt8], [[UInt8]], [[UInt8]]) -> Verdict,
        isSigned: ([UInt8], [UInt8], SHA256Digest) -> Bool?
    ) -> Verdict {
        guard let parts else { return .malformed }
        guard let signer = parts.signer, parts.isECDSAWithSHA256 else { return .untrusted }
        let digest = SHA256.digest(of: parts.content)
        let der = parts.certificates[signer]
        guard isSigned(der, parts.signature, digest) == true else { return .untrusted }
        let found = path(der, parts.certificates.filter { $0 != der }, [anchor])
        guard case .path = found else { return found }
        return .signed(content: parts.content, by: der)
    }

    private static func openSSL(
        _ leaf: [UInt8],
        _ others: [[UInt8]],
        _ anchors: [[UInt8]]
    ) -> Verdict {
        let read = others.compactMap { OpenSSLCertificate(bytes: $0) }
        guard let leaf = OpenSSLCertificate(bytes: leaf), read.count == others.count else {
            return .malformed
        }
        let trusted = anchors.compactMap { OpenSSLCertificate(bytes: $0) }
        return leaf.path(through: read, to: trusted).map { .path($0) } ?? .untrusted
    }

    private static func ours(
        _ leaf: [UInt8],
        _ others: [[UInt8]],
        _ anchors: [[UInt8]]
    ) -> Verdict {
        let read = others.compactMap { try? X509Certificate(der: $0) }
        guard let leaf = try? X509Certificate(der: leaf), read.count == others.count else {
            return .malformed
        }
        let trusted = anchors.compactMap { try? X509Certificate(der: $0) }
        return (try? leaf.path(through: read, to: trusted)).map { .path($0.map(\.der)) }
            ?? .untrusted
    }
}

extension MessageSummary {
    init(_ message: SignedMessage) {
        self.init(
            content: message.content,
            signature: message.signature,
            certificates: message.certificates.map(\.der),
            signer: message.certificates.firstIndex { $0 === message.signer },
            isECDSAWithSHA256: message.isECDSAWithSHA256
        )
    }
}

extension OpenSSLCertificate {
    convenience init?(bytes der: [UInt8]) { self.init(der: der.span) }
}

extension OpenSSLMessage {
    static func parts(bytes: [UInt8]) -> MessageSummary? { parts(ber: bytes.span) }
}
