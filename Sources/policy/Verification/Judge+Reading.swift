import AppAttest
import ByteCoding
import Cryptography
import HTTPWire
import RequestBinding
import Rules

// What a head says, and what of it was signed.
extension Judge {
    /// Base64 characters that the largest assertion takes.
    private static let assertionTextMax = (UnverifiedAssertion.bytesMax + 2) / 3 * 4

    static func assertion(_ text: Span<UInt8>) -> UnverifiedAssertion? {
        guard text.count <= assertionTextMax, let octets = Base64.decode(text) else { return nil }
        return try? UnverifiedAssertion(bytes: octets)
    }

    /// Refuses a signed field that came in more than one line. What is signed would be the lines
    /// joined (RFC 9110 §5.3), but some origins read the first one, and some the last.
    static func repetition(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>,
        _ rule: Rule,
        _ keyID: KeyID
    ) -> Ruling? {
        guard case .lines(_, let headers) = rule.signing else { return nil }
        for name in headers {
            let name = Array(name.utf8)
            var count = 0
            for field in head.fields.fields where ProofFields.equal(octets, field.name, name) {
                count += 1
            }
            if count > 1 { return Ruling(.refuse(.signedFieldRepeated), keyID: keyID) }
        }
        return nil
    }

    /// Reads all lines of Content-Digest as one (RFC 9110 §5.3).
    static func declaredDigest(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>
    ) -> ContentDigest.Reading {
        guard let first = head.fields.first(.contentDigest) else { return .absent }
        guard head.fields.repeatedKinds.contains(.contentDigest) else {
            return ContentDigest.read(octets.extracting(first.value))
        }
        var combined: [UInt8] = []
        for field in head.fields.fields where field.kind == .contentDigest {
            if !combined.isEmpty { combined.append(UInt8(ascii: ",")) }
            octets.extracting(field.value).withUnsafeBufferPointer {
                combined.append(contentsOf: $0)
            }
        }
        return ContentDigest.read(combined.span)
    }

    /// Whether signed content belongs to another form's client data.
    ///
    /// - `content`: at least the first bytes that ``RequestBinding/ClientDataDomain`` takes.
    func isAmbiguous(_ content: Span<UInt8>) -> Bool {
        let start = content.extracting(first: ClientDataDomain.startCount)
        return ClientDataDomain(of: start) != SigningForm.content.domain
    }

    /// Whether a signed part reads as one that is not signed.
    func isAmbiguous(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>,
        _ form: SigningForm
    ) -> Bool {
        guard case .lines(let parts, _) = form, parts.contains(.method) else { return false }
        return RequestLines.readsAsAbsent(octets.extracting(head.methodRange))
    }

    /// SHA-256 of the client data, where the content's digest is known or not signed.
    mutating func clientDataHash(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>,
        _ rule: Rule,
        _ digest: SHA256Digest?,
        _ challenge: [UInt8]?
    ) -> SHA256Digest {
        switch rule.signing {
        case .content: return digest ?? Self.emptyDigest
        case .challenge: return SHA256.digest(of: challenge ?? [])
        case .lines(let parts, let headers):
            writeStart(head, octets, parts)
            if let digest { lines.digest(digest.bytes.span) } else { lines.digest(nil) }
            writeEnd(head, octets, headers, challenge)
            let octets = lines.octets
            return SHA256.digest(octets.span)
        }
    }

    /// Keeps the lines before and behind the digest for the time when the content is known.
    mutating func split(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>,
        _ parts: SignedParts,
        _ headers: [String],
        _ proof: Proof
    ) -> Proof {
        writeStart(head, octets, parts)
        let before = lines.octets
        lines.beginBehindDigest(parts)
        writeEnd(head, octets, headers, proof.challenge)
        return Proof(
            keyID: proof.keyID,
            assertion: proof.assertion,
            challenge: proof.challenge,
            declared: proof.declared,
            linesBefore: before,
            linesBehind: lines.octets
        )
    }

    private mutating func writeStart(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>,
        _ parts: SignedParts
    ) {
        lines.begin(parts, method: octets.extracting(head.methodRange))
        // What the origin gets of an absolute-form target without path and query, too.
        guard !head.isForServer else { return lines.target([UInt8(ascii: "*")].span) }
        switch head.form {
        case .absolute where head.path.isEmpty:
            lines.target(behindSlash: octets.extracting(head.query))
        case .absolute: lines.target(octets.extracting(head.pathAndQuery))
        case .origin, .asterisk: lines.target(octets.extracting(head.target))
        }
    }

    private mutating func writeEnd(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>,
        _ headers: [String],
        _ challenge: [UInt8]?
    ) {
        if let challenge { lines.challenge(challenge.span) } else { lines.challenge(nil) }
        for name in headers {
            let name = Array(name.utf8)
            lines.header(name.span)
            for field in head.fields.fields where ProofFields.equal(octets, field.name, name) {
                lines.value(octets.extracting(field.value))
            }
            lines.endHeader()
        }
    }
}
