import Cryptography
import HTTPWire
import RequestBinding
import Rules
import Tokens

/// Computes what a request must have signed from its head. One for each event loop, since it keeps
/// scratch memory.
struct ClientDataWriter {
    private var lines = RequestLines()

    init() {}

    /// SHA-256 of no bytes.
    static let emptyDigest = SHA256.digest(Span())

    /// Whether a signed field came in more than one line. The signature would cover the joined
    /// lines (RFC 9110 §5.3), but some origins read the first line, and some the last.
    static func repeatsSigned(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        for rule: Rule
    ) -> Bool {
        guard case .lines(_, let headers) = rule.signing else { return false }
        for name in headers {
            let name = Array(name.utf8)
            var count = 0
            for field in head.fields.fields where ProofFields.equal(bytes, field.name, to: name) {
                count += 1
            }
            if count > 1 { return true }
        }
        return false
    }

    /// Reads all lines of Content-Digest as one (RFC 9110 §5.3).
    static func declaredDigest(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>
    ) -> ContentDigest.Reading {
        guard let first = head.fields.first(.contentDigest) else { return .absent }
        guard head.fields.repeatedKinds.contains(.contentDigest) else {
            return ContentDigest.read(bytes.extracting(first.value))
        }
        var combined: [UInt8] = []
        for field in head.fields.fields where field.kind == .contentDigest {
            if !combined.isEmpty { combined.append(UInt8(ascii: ",")) }
            bytes.extracting(field.value).withUnsafeBufferPointer {
                combined.append(contentsOf: $0)
            }
        }
        return ContentDigest.read(combined.span)
    }

    /// Whether signed content is also client data of another form.
    ///
    /// - `content`: at least the first bytes that ``RequestBinding/ClientDataDomain`` takes.
    static func isAmbiguous(_ content: Span<UInt8>) -> Bool {
        let start = content.extracting(first: ClientDataDomain.startCount)
        return ClientDataDomain(of: start) != SigningForm.content.domain
    }

    /// Whether a signed part equals the sign for a part that is not signed.
    static func isAmbiguous(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        in form: SigningForm
    ) -> Bool {
        guard case .lines(let parts, _) = form, parts.contains(.method) else { return false }
        return RequestLines.readsAsAbsent(bytes.extracting(head.methodRange))
    }

    /// Whether the signature covers bytes that may not be the client's, since they came by Envoy:
    /// it puts `!` for each byte that is not UTF-8, and joins the lines of a field by a comma.
    static func isInexact(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        in form: SigningForm
    ) -> Bool {
        guard case .lines(let parts, let headers) = form else { return false }
        func has(_ byte: UInt8, _ range: Range<Int>) -> Bool {
            range.contains { bytes[$0] == byte }
        }
        if parts.contains(.target), has(UInt8(ascii: "!"), head.target) { return true }
        for name in headers.map({ Array($0.utf8) }) {
            for field in head.fields.fields where ProofFields.equal(bytes, field.name, to: name) {
                if has(UInt8(ascii: "!"), field.value) || has(UInt8(ascii: ","), field.value) {
                    return true
                }
            }
        }
        return false
    }

    /// What the client must have signed, where the content's digest is known or not signed: SHA-256
    /// of the client data for an assertion, their code for a session.
    mutating func digest(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        for rule: Rule,
        content digest: SHA256Digest?,
        of proof: Proof
    ) -> SHA256Digest {
        switch rule.signing {
        case .content: return digest ?? Self.emptyDigest
        case .challenge: return SHA256.digest(of: proof.challenge ?? [])
        case .lines(let parts, let headers):
            writeStart(head, bytes, parts: proof.parts(parts))
            if let digest { lines.digest(digest.bytes.span) } else { lines.digest(nil) }
            writeEnd(head, bytes, headers: headers, challenge: proof.challenge)
            return digested(proof)
        }
    }

    /// What the client must have signed, for content that was held.
    mutating func digest(_ content: SHA256Digest, for rule: Rule, of proof: Proof) -> SHA256Digest {
        switch rule.signing {
        case .content: return content
        case .challenge: return SHA256.digest(of: proof.challenge ?? [])
        case .lines(let parts, _):
            lines.resume(behind: proof.linesBefore, proof.parts(parts), hasDigest: false)
            lines.digest(content.bytes.span)
            return digested(proof, behind: proof.linesBehind)
        }
    }

    /// The digest of the written lines and the lines `behind` them.
    private func digested(_ proof: Proof, behind: [UInt8] = []) -> SHA256Digest {
        let bytes = lines.bytes
        switch proof.evidence {
        case .assertion: return SHA256.digest(bytes.span, behind.span)
        case .session(let evidence): return evidence.session.signature(of: bytes.span, behind.span)
        }
    }

    /// Keeps the lines before and after the digest for the time when the content is known.
    mutating func split(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        parts: SignedParts,
        headers: [String],
        into proof: inout Proof
    ) {
        let parts = proof.parts(parts)
        writeStart(head, bytes, parts: parts)
        proof.linesBefore = lines.bytes
        lines.beginBehindDigest(parts)
        writeEnd(head, bytes, headers: headers, challenge: proof.challenge)
        proof.linesBehind = lines.bytes
    }

    private mutating func writeStart(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        parts: SignedParts
    ) {
        lines.begin(parts, method: bytes.extracting(head.methodRange))
        // An origin gets the same for an absolute-form target without path and query.
        guard !head.isForServer else { return lines.target([UInt8(ascii: "*")].span) }
        switch head.form {
        case .absolute where head.path.isEmpty:
            lines.target(behindSlash: bytes.extracting(head.query))
        case .absolute: lines.target(bytes.extracting(head.pathAndQuery))
        case .origin, .asterisk: lines.target(bytes.extracting(head.target))
        }
    }

    private mutating func writeEnd(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        headers: [String],
        challenge: [UInt8]?
    ) {
        if let challenge { lines.challenge(challenge.span) } else { lines.challenge(nil) }
        for name in headers {
            let name = Array(name.utf8)
            lines.header(name.span)
            for field in head.fields.fields where ProofFields.equal(bytes, field.name, to: name) {
                lines.value(bytes.extracting(field.value))
            }
            lines.endHeader()
        }
    }
}
