import Encodings
import Foundation
import RequestBinding
import Tokens

extension FuzzTarget {
    private static let issuer = ChallengeIssuer(capacity: 1 << 16)
    private static let now: Int64 = 1_767_225_600
    private static let issued = issuer.issue(.assertion, now: now)

    /// A challenge from nowhere is unknown, and so is a real one with any bit changed.
    static func challenge(_ bytes: [UInt8]) {
        let issued = issued
        let real = Base64.decode(issued.span)
        for purpose in ChallengePurpose.allCases {
            demand(
                issuer.examine(bytes.span, purpose: purpose, now: now) == .unknown,
                "nobody can make a challenge up"
            )
        }
        var changed = issued
        for (index, byte) in bytes.prefix(issued.count).enumerated() { changed[index] ^= byte }
        if bytes.count > issued.count { changed += bytes.dropFirst(issued.count) }
        let examination = issuer.examine(changed.span, purpose: .assertion, now: now)
        if Base64.decode(changed.span) == real {
            guard case .valid = examination else {
                // A text that no challenge has may decode to one: it is longer, or padded.
                return demand(changed != issued, "a real challenge is valid")
            }
        } else {
            demand(examination == .unknown, "a changed challenge is unknown")
        }
        demand(
            issuer.examine(changed.span, purpose: .enrolment, now: now) == .unknown,
            "a challenge is for its purpose alone"
        )
    }

    /// Base64 and hexadecimal text: what decodes encodes to the same, but for the alphabet.
    static func base64(_ bytes: [UInt8]) {
        demand(Base64.decode(Base64.encode(bytes).span) == bytes, "base64 reads again")
        demand(Base64.decode(Base64.encodeURL(bytes).span) == bytes, "base64url reads again")
        demand(Hex.decode(Hex.text(bytes)) == bytes, "hexadecimal text reads again")
        if let decoded = Base64.decode(bytes.span) {
            var plain = bytes.map { $0 == 0x2B ? 0x2D : $0 == 0x2F ? 0x5F : $0 }
            while plain.last == 0x3D { plain.removeLast() }
            demand(Base64.encodeURL(decoded) == plain, "bytes have one spelling in base64")
        }
        let text = String(decoding: bytes, as: UTF8.self)
        if let decoded = Hex.decode(text) {
            demand(Hex.text(decoded) == text.lowercased(), "bytes have one hexadecimal spelling")
        }
    }

    /// A Content-Digest: lines are joined in any number, and other algorithms do not matter.
    static func digest(_ bytes: [UInt8]) {
        let reading = ContentDigest.read(bytes.span)
        if case .digest(let digest) = reading {
            demand(digest.count == 32, "a digest has 32 bytes")
            let canonical = Array("sha-256=:".utf8) + Base64.encode(digest) + Array(":".utf8)
            demand(ContentDigest.read(canonical.span) == reading, "a digest reads again")
            let twice = bytes + Array(",".utf8) + canonical
            demand(
                [reading, .malformed].contains(ContentDigest.read(twice.span)),
                "saying it again does not change it"
            )
        }
        let other = Array("sha-512=:AAAA:,".utf8) + bytes
        // A comma ends no field.
        let expected: ContentDigest.Reading = bytes.isEmpty ? .malformed : reading
        demand(ContentDigest.read(other.span) == expected, "other algorithms do not matter")
    }

    /// JSON: what is found in it is what Foundation finds there.
    static func json(_ bytes: [UInt8]) {
        let parsed = try? JSONSerialization.jsonObject(
            with: Data(bytes),
            options: .fragmentsAllowed
        )
        let members: Set = ["challenge", "n", "chain"]
        if let document = JSONDocument(bytes.span, members: members, lists: ["chain"]) {
            check(document, parsed as? [String: Any], bytes)
        }
        for place in ["/challenge", "/a/b", "/0/x", "/list/1"] {
            guard let found = JSONPointer(place)?.string(in: bytes.span),
                let text = String(validating: found, as: UTF8.self),
                isForFoundation(bytes)
            else { continue }
            demand(parsed != nil, "what holds a string at \(place) is JSON")
            var value = parsed
            for token in place.split(separator: "/") {
                if let list = value as? [Any], let index = Int(token), index < list.count {
                    value = list[index]
                } else {
                    value = (value as? [String: Any])?[String(token)]
                }
            }
            demand(
                (value as? String).map { Array($0.utf8) } == Array(text.utf8),
                "\(place) is what another reader finds"
            )
        }
    }

    /// Whether Foundation reads the text if it is JSON.
    ///
    /// What nobody asked for is passed over by ours: without a look at its encoding, and whatever
    /// the size of its numbers, which RFC 8259 §6 leaves to the reader.
    static func isForFoundation(_ bytes: [UInt8]) -> Bool {
        var digits = 0
        for byte in bytes {
            if digits > 0, byte | 0x20 == UInt8(ascii: "e") { return false }
            digits = (0x30...0x39).contains(byte) ? digits + 1 : 0
            guard digits < 16 else { return false }
        }
        return String(validating: bytes, as: UTF8.self) != nil
    }

    private static func check(
        _ document: JSONDocument,
        _ parsed: [String: Any]?,
        _ bytes: [UInt8]
    ) {
        guard isForFoundation(bytes) else { return }
        demand(parsed != nil, "what is read is a JSON object")
        if let texts = document.list("chain") {
            demand(parsed?["chain"] as? [String] == texts, "a list is what another reader finds")
        }
        for name in ["challenge", "n"] {
            if let text = document.string(name) {
                demand(parsed?[name] as? String == text, "a member is what another reader finds")
            }
            if let number = document.integer(name) {
                demand((parsed?[name] as? NSNumber)?.intValue == number, "a number is that number")
            }
        }
    }
}
