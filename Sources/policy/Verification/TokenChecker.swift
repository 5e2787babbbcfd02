package import AppAttest
package import HTTPWire
package import Rules
package import Signatures

/// A token that a request shows.
package struct ShownToken: Sendable {
    /// 1…``ShownTokens/bytesMax`` bytes, as they came.
    package let text: [UInt8]
    package let proof: TokenProof
    /// The client's address; `nil` where it is unknown.
    package let address: IPAddress?
    /// What an integrity token has to be bound to; `nil` for other tokens.
    package let binding: IntegrityBinding?
    package let now: UnixTime

    package init(
        text: [UInt8],
        proof: TokenProof,
        address: IPAddress?,
        binding: IntegrityBinding? = nil,
        now: UnixTime
    ) {
        self.text = text
        self.proof = proof
        self.address = address
        self.binding = binding
        self.now = now
    }
}

/// What is known of a token when its check returns.
package enum TokenChecking: Hashable, Sendable {
    /// The result. No other follows.
    case known(TokenFinding)
    /// The result follows, within a time that the check bounds.
    case later
    /// The result follows a commit of the store. The request waits for as long as for every commit.
    case afterCommit
}

/// Checks the tokens of one proof of the section `proofs`, for all event loops.
package protocol TokenChecker: Sendable {
    /// Checks a token, and uses it up where it is good once.
    ///
    /// - found: called exactly once, on any thread, unless the result is known at once.
    func check(
        _ token: ShownToken,
        _ found: @escaping @Sendable (TokenFinding) -> Void
    ) -> TokenChecking
}

/// What an integrity token has to be bound to.
///
/// A reference, so that requests whose rules ask for no such token carry one word.
package final class IntegrityBinding: Sendable {
    /// The package of the key's app.
    package let package: String
    package let keyID: KeyID
    /// SHA-256 of what the key has signed, or of what it was attested over.
    package let clientDataHash: SHA256Digest

    package init(package: String, keyID: KeyID, clientDataHash: SHA256Digest) {
        self.package = package
        self.keyID = keyID
        self.clientDataHash = clientDataHash
    }
}

/// The tokens that a request shows for the proofs that its rule names.
///
/// A reference, so that requests whose rules name none carry nothing.
package final class ShownTokens: Sendable {
    /// The most bytes of a token.
    package static let bytesMax = 8_192

    /// The contents of the field or the cookie.
    package enum Showing: Hashable, Sendable {
        case nothing
        /// It is empty, too long, there twice, or servers differ on what it is.
        case unreadable
        case text([UInt8])
    }

    /// In the order of the rule's tokens.
    private let shown: [Showing]

    package init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, for rule: Rule) {
        var shown: [Showing] = []
        for token in rule.tokens { shown.append(Self.showing(token.place, in: head, bytes)) }
        self.shown = shown
    }

    /// What a request to an endpoint shows in the field of a proof.
    package static func showing(
        _ place: TokenProof.Place,
        in head: borrowing RequestHead,
        _ bytes: Span<UInt8>
    ) -> Showing {
        switch place {
        case .field(let name): field(name, in: head.fields, bytes)
        case .cookie(let name): cookie(name, in: head.fields, bytes)
        }
    }

    /// What the request shows for a proof of its rule.
    package func showing(_ proof: TokenProof, _ rule: Rule) -> Showing {
        rule.tokens.firstIndex(of: proof).map { shown[$0] } ?? .nothing
    }

    private static func field(
        _ name: [UInt8],
        in section: borrowing FieldSection,
        _ bytes: Span<UInt8>
    ) -> Showing {
        var found = Showing.nothing
        for index in section.fields.indices {
            let field = section.fields[index]
            guard ProofFields.equal(bytes, field.name, to: name) else { continue }
            guard found == .nothing else { return .unreadable }
            if field.kind == .authorization {
                guard let token = bearer(bytes, field.value) else { continue }
                found = text(bytes, token)
            } else {
                found = text(bytes, field.value)
            }
        }
        return found
    }

    /// The place of the token after the scheme; `nil` for credentials of another scheme.
    private static func bearer(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Range<Int>? {
        let scheme: [UInt8] = Array("bearer".utf8)
        guard value.count > scheme.count,
            ProofFields.equal(
                bytes,
                value.lowerBound..<value.lowerBound + scheme.count,
                to: scheme
            ),
            bytes[value.lowerBound + scheme.count] == 0x20
        else { return nil }
        var start = value.lowerBound + scheme.count
        while start < value.upperBound, bytes[start] == 0x20 { start += 1 }
        return start..<value.upperBound
    }

    /// The lines of HTTP/2 are one by now (RFC 9113 §8.2.3). Clients of HTTP/1.1 send one (RFC 6265
    /// §5.4): servers join two by a comma or a semicolon, or take the last.
    private static func cookie(
        _ name: [UInt8],
        in section: borrowing FieldSection,
        _ bytes: Span<UInt8>
    ) -> Showing {
        guard section.contains(.cookie) else { return .nothing }
        let name = CookieName(name)
        var found = Showing.nothing
        var lines = 0
        for index in section.fields.indices where section.fields[index].kind == .cookie {
            lines += 1
            switch name.finding(in: bytes, section.fields[index].value) {
            case .nothing: continue
            case .unclear: return .unreadable
            case .value(let value): found = text(bytes, value)
            }
        }
        return lines > 1 && found != .nothing ? .unreadable : found
    }

    private static func text(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Showing {
        guard (1...bytesMax).contains(range.count) else { return .unreadable }
        return .text(bytes.extracting(range).withUnsafeBufferPointer { Array($0) })
    }
}
