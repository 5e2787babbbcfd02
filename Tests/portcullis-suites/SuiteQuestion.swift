import Encodings
import KeyAttestation
import RequestBinding
import Signatures
import Tokens

/// A case of a suite: what is asked, and the words that are left to read.
struct SuiteQuestion {
    private let kind: Substring
    private var words: ArraySlice<Substring>

    init(_ line: String) {
        let all = line.split(separator: " ", omittingEmptySubsequences: false)
        kind = all.first ?? ""
        words = all.dropFirst()
    }

    /// `nil` where the line is no question.
    var answer: String? {
        mutating get {
            switch kind {
            case "p256": p256Answer()
            case "p256-pair": pairAnswer()
            case "issuer-p256": issuerAnswer { ECPublicKey(p256: $0) }
            case "issuer-p384": issuerAnswer { ECPublicKey(p384: $0) }
            case "issuer-rsa": rsaAnswer()
            case "token-key": tokenKeyAnswer()
            case "token": tokenAnswer()
            case "classic-token": classicTokenAnswer()
            case "json": jsonAnswer()
            case "digest": digestAnswer()
            case "path": pathAnswer()
            default: nil
            }
        }
    }

    private mutating func bytes() -> [UInt8]? { words.popFirst().flatMap { Hex.decode($0) } }

    private mutating func text() -> String? {
        bytes().map { String(decoding: $0, as: UTF8.self) }
    }

    private static func word(_ isValid: Bool) -> String { isValid ? "accepted" : "signature" }

    // MARK: Signatures

    /// Point, message, signature in DER: assertions of iPhones, Android's key signatures.
    private mutating func p256Answer() -> String? {
        guard let point = bytes(), let message = bytes(), let signature = bytes() else {
            return nil
        }
        guard let key = P256PublicKey(x963: point) else { return "key" }
        return Self.word(key.isValidSignature(signature.span, message: message.span))
    }

    /// The same with r and s: the form of JSON Web Signatures.
    private mutating func pairAnswer() -> String? {
        guard let point = bytes(), let message = bytes(), let signature = bytes() else {
            return nil
        }
        guard let key = P256PublicKey(x963: point) else { return "key" }
        return Self.word(key.isValidJOSESignature(signature.span, message: message.span))
    }

    /// Hash, point, message, signature: of a certificate's issuer.
    private mutating func issuerAnswer(_ key: ([UInt8]) -> ECPublicKey?) -> String? {
        guard let hash = hash(), let point = bytes(), let message = bytes(),
            let signature = bytes()
        else { return nil }
        guard let key = key(point) else { return "key" }
        return Self.word(key.isValid(signature, over: message, hash))
    }

    /// The same for RSA, with a SubjectPublicKeyInfo.
    private mutating func rsaAnswer() -> String? {
        guard let hash = hash(), let info = bytes(), let message = bytes(),
            let signature = bytes()
        else { return nil }
        guard let key = RSAPublicKey(der: info) else { return "key" }
        return Self.word(key.isValid(signature, over: message, hash))
    }

    private mutating func hash() -> SignatureScheme.Hash? {
        switch text() {
        case "SHA-256": .sha256
        case "SHA-384": .sha384
        case "SHA-512": .sha512
        default: nil
        }
    }

    // MARK: Tokens

    /// Key set, algorithm, message, signature: of a key of an issuer of tokens.
    private mutating func tokenKeyAnswer() -> String? {
        guard let set = bytes(), let algorithm = text().flatMap(TokenAlgorithm.init),
            let message = bytes(), let signature = bytes()
        else { return nil }
        guard let keys = try? TokenKeySet(json: set) else { return "key-set" }
        let isValid = keys.isValid(signature, over: message.span, keyID: nil, algorithm: algorithm)
        return isValid.map(Self.word) ?? "key"
    }

    /// Key set, token. Suites sign texts that are no claims: what is wrong with a token after its
    /// signature was right is accepted here.
    private mutating func tokenAnswer() -> String? {
        guard let set = bytes(), let token = bytes() else { return nil }
        guard let keys = try? TokenKeySet(json: set) else { return "key-set" }
        let terms = TokenTerms(
            issuer: "issuer",
            audiences: ["audience"],
            algorithms: Set(TokenAlgorithm.allCases)
        )
        do throws(TokenFault) {
            _ = try TokenVerifier(terms).verified(token.span, keys, now: 0)
            return "accepted"
        } catch {
            switch error {
            case .malformed, .algorithm, .unknownKey, .signature: return error.rawValue
            case .type, .issuer, .audience, .expired, .notYet, .claim, .use: return "accepted"
            }
        }
    }

    /// Key, token: what opens a classic token of Play Integrity. The key that its signature is
    /// verified with is asked for and not used.
    private mutating func classicTokenAnswer() -> String? {
        guard let key = bytes(), let token = bytes() else { return nil }
        guard let keys = ClassicTokenKeys(decryption: key, verification: Self.anyKey) else {
            return "key"
        }
        do throws(TokenFault) {
            return "accepted " + Hex.text(try keys.opened(token.span))
        } catch {
            return error.rawValue
        }
    }

    /// The generator of P-256, in the DER of a public key.
    private static let anyKey =
        Hex.decode(
            "3059301306072a8648ce3d020106082a8648ce3d030107034200046b17d1f2e12c4247f8bce6e563a440"
                + "f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315e"
                + "cecbb6406837bf51f5"
        ) ?? []

    // MARK: Texts and certificates

    private mutating func jsonAnswer() -> String? {
        guard let text = bytes() else { return nil }
        var reader = JSONReader()
        do throws(JSONError) {
            try reader.skipValue(text.span, depth: 0)
            try reader.end(text.span)
            return "accepted"
        } catch {
            return "column \(error.column)"
        }
    }

    private mutating func digestAnswer() -> String? {
        guard let field = bytes() else { return nil }
        return switch ContentDigest.read(field.span) {
        case .digest(let digest): "accepted " + Hex.text(digest)
        case .absent: "absent"
        case .malformed: "malformed"
        }
    }

    /// Second of Unix time, leaf, anchors, intermediates; certificates in PEM.
    private mutating func pathAnswer() -> String? {
        guard let time = words.popFirst().flatMap({ Int64($0) }), let leaf = text(),
            let anchors = text(), let others = text()
        else { return nil }
        do throws(X509CertificateError) {
            let leaves = try X509Certificate.certificates(pem: leaf)
            _ = try leaves[0].path(
                through: others.isEmpty ? [] : X509Certificate.certificates(pem: others),
                to: X509Certificate.certificates(pem: anchors),
                at: UnixTime(seconds: time)
            )
            return "accepted"
        } catch {
            return error.reason.rawValue
        }
    }
}
