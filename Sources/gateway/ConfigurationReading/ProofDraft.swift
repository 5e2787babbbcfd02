import Encodings
import HTTPWire
package import Parties
package import Rules
package import Tokens

/// A named proof of the section `proofs`, in the file's words.
struct ProofDraft {
    /// The kinds of proofs: `kind`.
    enum Kind: String, CaseIterable {
        case jwt
        case siteverify
        case integrity = "play-integrity"
    }

    private static let keys = Keys<Self> {
        Key("kind").means("The kind of the tokens.")
        Key("field").means("The field that has the token; Authorization with the scheme Bearer.")
        Key("cookie").means("In its place: the cookie that has the token.")
        Key("on_error").means("What happens when a token can't be checked. Without it, refuse.")
    }

    let name: Located<String>
    private let reader: MappingReader
    private let kind: Located<Kind>?
    private let place: TokenProof.Place?
    private let onError: Located<DependencyErrorRule>?
    private let jwt: JWTDraft
    private let siteverify: SiteverifyDraft
    private let integrity: IntegrityDraft

    /// The proofs of the file, in their order.
    static func all(_ reader: MappingReader) -> [ProofDraft] {
        guard let node = reader.node("proofs") else { return [] }
        guard case .mapping(let members) = node.content, !members.isEmpty else {
            let use = "a mapping: name: { kind: jwt, … }"
            reader.log.error(node.place, "proofs", found: node.found, use: use)
            return []
        }
        if members.count > countMax {
            reader.log.error(
                node.place,
                "proofs",
                found: "\(members.count) proofs",
                use: "\(countMax) at most"
            )
        }
        return members.compactMap { ProofDraft($0, log: reader.log) }
    }

    /// The most proofs of a file.
    private static let countMax = 32

    private init?(_ member: SourceNode.Member, log: ProblemLog) {
        let keyPath = "proofs.\(member.key)"
        let keys = Self.keys.names + Kind.allCases.flatMap(Self.keys(of:))
        guard let reader = MappingReader(member.value, keyPath, keys: keys, log: log) else {
            return nil
        }
        Self.keys.note(reader)
        self.reader = reader
        name = Located(value: member.key, place: member.place, keyPath: keyPath)
        if !Self.isName(member.key) {
            log.error(
                member.place,
                keyPath,
                found: SourceNode.quoted(member.key),
                use: "1…32 lower-case letters, digits and hyphens, a letter first, and not "
                    + Self.ownNames.joined(separator: " or ")
            )
        }
        reader.require(
            "kind",
            use: "kind: \(Kind.allCases.map(\.rawValue).joined(separator: " | "))"
        )
        kind = reader.word("kind")
        onError = reader.word("on_error")
        let isIntegrity = kind?.value == .integrity
        place = Self.place(reader, usual: isIntegrity ? IntegrityDraft.field : nil)
        // Several kinds have keys of one name.
        let meant = kind?.value
        func own(_ kind: Kind) -> MappingReader {
            meant == nil || meant == kind ? reader : reader.emptied
        }
        jwt = JWTDraft(own(.jwt), isMeant: meant == .jwt)
        let isSiteverify = meant == .siteverify
        siteverify = SiteverifyDraft(own(.siteverify), name: member.key, isMeant: isSiteverify)
        integrity = IntegrityDraft(own(.integrity), name: member.key, isMeant: isIntegrity)
        if let kind { Self.checkIdle(reader, kind.value) }
    }

    /// Reports keys of other kinds.
    private static func checkIdle(_ reader: MappingReader, _ kind: Kind) {
        let own = Set(keys(of: kind))
        var seen = own
        for other in Kind.allCases {
            for key in keys(of: other) where reader.has(key) && seen.insert(key).inserted {
                let kinds = Kind.allCases.filter { keys(of: $0).contains(key) }.map(\.rawValue)
                reader.error(
                    key,
                    found: "it with kind: \(kind.rawValue), where it has no effect",
                    use: "kind: \(kinds.joined(separator: " or ")), or no \(key)"
                )
            }
        }
    }

    private static func keys(of kind: Kind) -> [String] {
        switch kind {
        case .jwt: JWTDraft.keys.names
        case .siteverify: SiteverifyDraft.keys.names
        case .integrity: IntegrityDraft.keys.names
        }
    }

    private static let ownNames = ["assertion", "session"]

    private static func isName(_ text: String) -> Bool {
        let isPlain = text.utf8.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || byte == UInt8(ascii: "-")
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        }
        return isPlain && (1...32).contains(text.utf8.count) && text.first?.isLetter == true
            && !ownNames.contains(text)
    }

    /// - usual: the field of a proof that names none; `nil` where it has to name one.
    private static func place(_ reader: MappingReader, usual: String?) -> TokenProof.Place? {
        if let usual, !reader.has("field"), !reader.has("cookie") {
            return .field(Array(usual.utf8))
        }
        let use = "a field name that is not one of the gateway's own"
        let field = reader.value("field", use: use) { text -> [UInt8]? in
            guard let name = FieldNameText.lowerCase(text).map({ Array($0.utf8) }) else {
                return nil
            }
            let kind = FieldKind(name: name)
            let isFree = kind == .other || kind == .authorization || text.lowercased() == usual
            return isFree ? name : nil
        }
        let cookie = reader.value("cookie", use: "the name of a cookie") { text -> [UInt8]? in
            let name = Array(text.utf8)
            let isToken = FieldNameText.lowerCase(text) != nil || text.contains("_")
            return isToken && (1...128).contains(name.count)
                && name.allSatisfy { (0x21...0x7E).contains($0) && !"=;,\"\\".utf8.contains($0) }
                ? name : nil
        }
        guard reader.has("field") != reader.has("cookie") else {
            reader.log.error(
                reader,
                found: reader.has("field")
                    ? "a field and a cookie" : "neither a field nor a cookie",
                use: "field: X-Firebase-AppCheck, field: Authorization (with the scheme Bearer), "
                    + "or cookie: name"
            )
            return nil
        }
        return field.map { .field($0.value) } ?? cookie.map { .cookie($0.value) }
    }

    /// The proof as rules refer to it; `nil` where it could not be read, which was reported.
    func proof(index: Int) -> TokenProof? {
        place.map {
            TokenProof(
                name: name.value,
                index: index,
                place: $0,
                onError: onError?.value ?? .refuse,
                needsStore: kind?.value != .jwt || jwt.isGoodOnce
            )
        }
    }

    /// Whether its tokens carry Google Play's verdict.
    var isIntegrity: Bool { kind?.value == .integrity }

    /// The complete proof; `nil` where it has an error, which was reported.
    func validated(_ proof: TokenProof, _ files: NamedFiles, hasStore: Bool) -> ProofSettings? {
        switch kind?.value {
        case .jwt:
            jwt.validated(files, hasStore: hasStore).map {
                ProofSettings(proof: proof, kind: .jwt($0))
            }
        case .siteverify:
            siteverify.validated(files).map {
                ProofSettings(proof: proof, kind: .siteverify($0))
            }
        case .integrity:
            integrity.validated(files, hasStore: hasStore).map {
                ProofSettings(proof: proof, kind: .integrity($0))
            }
        case nil: nil
        }
    }
}

/// The keys of `kind: jwt`.
struct JWTDraft: Declared {
    static let keys = Keys<Self> {
        Key("keys", into: \.source) { source($0, $1) }
            .means("Where the issuer's public keys come from.")
        Key("issuer", into: \.issuer) { $0.value($1, use: textUse, text)?.value }
            .means("The iss claim, exactly.")
        Key("audience", into: \.audiences) { $0.texts($1, use: textUse, text)?.map(\.value) }
            .means("Of which one has to be in the aud claim.")
        Key("typ", into: \.type) { $0.value($1, use: typeUse, type)?.value }
            .means("The typ of the token's header. Without it, any.")
        Key("algorithms", into: \.algorithms) { reader, key in
            let names = algorithmNames
            return reader.list(key, of: names.joined(separator: ", "), words: names) {
                TokenAlgorithm(rawValue: $0)
            }?.map(\.value)
        }
        .means("The algorithms that are accepted, each with keys of its kind.")
        Key("leeway", into: \.leeway) {
            $0.count($1, of: .seconds(1), in: .zero ... .seconds(TokenTerms.leewayMax))?.value
        }
        .means("How far the issuer's clock may be from this one. Without it, 30s.")
        Key("max_age", into: \.ageMax) {
            $0.count($1, of: .seconds(1), in: .seconds(1) ... .days(366))?.value
        }
        .means("The greatest age by the iat claim. Without it, any.")
        Key("required", into: \.required) {
            $0.list($1, of: "names of claims", text)?.map(\.value)
        }
        .means("Claims that have to be there.")
        Key("claims", into: \.claims) { claims($0, $1) }
            .means("Claims that have to have one of some values.")
        Key("once", into: \.once) { $0.word($1) }.means("jti: each token is good for one request.")
    }

    private enum Source {
        case file(Located<String>)
        case address(Stated<KeySetAddress>)
    }

    private enum Once: String, CaseIterable {
        case jti
    }

    private let reader: MappingReader
    private var source: Source?
    private var issuer: String?
    private var audiences: [String]?
    private var type: String?
    private var algorithms: [TokenAlgorithm]?
    private var leeway: Int64?
    private var ageMax: Int64?
    private var required: [String]?
    private var claims: [TokenTerms.Claim]?
    private var once: Located<Once>?

    /// - isMeant: whether the proof is of this kind. Its keys are read in any case.
    init(_ reader: MappingReader, isMeant: Bool) {
        self.reader = reader
        if isMeant { Self.require(reader) }
        Self.keys.read(reader, into: &self)
    }

    /// `nil` where a mandatory one is absent or has a problem.
    private var terms: TokenTerms? {
        guard let issuer, let audiences, let algorithms else { return nil }
        var terms = TokenTerms(
            issuer: issuer,
            audiences: audiences,
            algorithms: Set(algorithms)
        )
        terms.type = type
        if let leeway { terms.leeway = leeway }
        terms.ageMax = ageMax
        terms.required = required ?? []
        terms.claims = claims ?? []
        if once != nil { terms.use = .once }
        return terms
    }

    /// Whether each token is good once, so that the store remembers it.
    var isGoodOnce: Bool { once != nil }

    private static func require(_ reader: MappingReader) {
        let algorithms = algorithmNames.joined(separator: ", ")
        reader.require("keys", use: "keys: { url: https://… } or { file: keys.json }")
        reader.require("issuer", use: "issuer: the text of the iss claim")
        reader.require("audience", use: "audience: a text of the aud claim, or a list")
        reader.require("algorithms", use: "algorithms: [\(algorithms)]")
    }

    private static let algorithmNames = TokenAlgorithm.allCases.map(\.rawValue)
    private static let textUse = "1…256 characters"

    private static func text(_ text: String) -> String? {
        (1...256).contains(text.utf8.count) ? text : nil
    }

    private static let typeUse =
        "the typ of the issuer's tokens, such as at+jwt or application/at+jwt"

    /// A media type, or a subtype of `application` (RFC 7515 §4.1.9).
    private static func type(_ text: String) -> String? {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        let isType = parts.allSatisfy { part in
            !part.isEmpty
                && part.utf8.allSatisfy { $0.isAlphanumeric || "!#$&-^_.+".utf8.contains($0) }
        }
        return isType && parts.count <= 2 && text.utf8.count <= 128 ? text : nil
    }

    private static func source(_ reader: MappingReader, _ key: String) -> Source? {
        let (node, keyPath) = (reader.node(key), reader.path(key))
        let stated = Stated(node, keyPath, over: KeySetAddress(), reader.log)
        guard let stated else { return nil }
        let inner = stated.reader
        let file = inner.filePath("file", use: "a file's path")
        switch (stated.located("url", \.url), file) {
        case (.some, nil): return .address(stated)
        case (nil, let file?):
            for key in KeySetAddress.fetchingKeys where inner.has(key) {
                inner.error(
                    key,
                    found: "it beside file, where it has no effect",
                    use: "url in place of file, or no \(key)"
                )
            }
            return .file(file)
        case (nil, nil) where inner.has("url") || inner.has("file"): return nil
        case (nil, nil), (.some, .some):
            reader.log.error(
                inner,
                found: file == nil ? "neither url nor file" : "url and file",
                use: "one of the two"
            )
            return nil
        }
    }

    /// The most claims that a proof names.
    private static let claimsMax = 16

    private static let claimForm = "{ name: sub, values: [a, b] }"

    private static let claimKeys = Keys<TokenTerms.Claim> {
        Key("name").means("The claim's name.").mandatory(claimForm)
        Key("values").means("The values of which it has to have one.").mandatory(claimForm)
    }

    private static func claims(_ reader: MappingReader, _ key: String) -> [TokenTerms.Claim] {
        let nodes = reader.list(key, of: claimForm) ?? []
        if nodes.count > claimsMax {
            reader.error(key, found: "\(nodes.count) claims", use: "\(claimsMax) at most")
        }
        return nodes.compactMap { node, keyPath in
            let keys = claimKeys.names
            let inner = MappingReader(node, keyPath, keys: keys, log: reader.log)
            guard let inner else { return nil }
            claimKeys.note(inner)
            let name = inner.value("name", use: textUse, text)
            let values = inner.texts("values", use: textUse, text)
            guard let name, let values else { return nil }
            return TokenTerms.Claim(name.value, values.map(\.value))
        }
    }

    /// The settings, with the file of keys read; `nil` where there is an error, which was reported.
    ///
    /// - hasStore: whether there is a store that remembers spent tokens.
    func validated(_ files: NamedFiles, hasStore: Bool) -> JWTSettings? {
        guard let source, let terms else { return nil }
        if let once, !hasStore {
            reader.log.error(
                once,
                found: "it without a store, which remembers the tokens that were used",
                use: "store: { sqlite: portcullis.db }, or no once"
            )
        }
        switch source {
        case .address(let stated):
            var address = stated.value
            address.roots = files.roots(stated.reader)
            return JWTSettings(terms: terms, keys: .address(address))
        case .file(let file):
            return keys(file, files).map { JWTSettings(terms: terms, keys: .set($0)) }
        }
    }

    private func keys(_ file: Located<String>, _ files: NamedFiles) -> TokenKeySet? {
        let path = files.path(of: file)
        func report(_ found: String) {
            reader.log.error(
                file,
                found: "\(found) (\(path))",
                use: "a readable file with a JSON Web Key Set (RFC 7517 §5)"
            )
        }
        do {
            return try TokenKeySet(json: files.disk.contents(of: path, limit: TokenKeySet.bytesMax))
        } catch let fault as FileFault {
            report(fault.found)
        } catch let fault as TokenKeySet.Fault {
            report("no set of keys, since \(fault.detail)")
        } catch {
            report("\(error)")
        }
        return nil
    }
}

extension MappingReader {
    /// One text, or a list of texts.
    func texts<Value: Hashable>(
        _ key: String,
        use: String,
        _ read: (String) -> Value?
    ) -> [Located<Value>]? {
        guard let node = node(key) else { return nil }
        if case .list = node.content { return list(key, of: use, read) }
        return value(key, use: use + ", or a list", read).map { [$0] }
    }
}

/// A proof of the section `proofs`.
package struct ProofSettings: Sendable {
    /// How its tokens are checked.
    package enum Kind: Sendable {
        case jwt(JWTSettings)
        case siteverify(SiteverifySettings)
        case integrity(IntegritySettings)
    }

    package let proof: TokenProof
    package let kind: Kind
}

/// The settings of `kind: jwt`.
package struct JWTSettings: Sendable {
    /// `keys`: where the issuer's public keys come from.
    package enum Keys: Sendable {
        /// A file, which is read at a start and at a reload.
        case set(TokenKeySet)
        /// An address that is asked again and again.
        case address(KeySetAddress)
    }

    package let terms: TokenTerms
    package let keys: Keys
}

/// Where a set of keys is fetched, and how often.
package struct KeySetAddress: Hashable, Sendable, Declared {
    package var url = ""
    /// Whatever the answer says, and however many tokens name an unknown key.
    package var intervalMin = Duration.seconds(60)
    package var intervalMax = Duration.seconds(21_600)
    /// `roots`: the certificates of a PEM file, instead of the system's; `nil` for the system's.
    package var roots: [UInt8]?
    package var proxy: String?
    /// From the name's look-up to the last byte.
    package var timeout = Duration.seconds(10)

    static let keys = Keys<Self> {
        Key("url", \.url, OutboundKeys.address).means("Where the issuer's keys are fetched.")
        Key("file", read: .file("a file's path"))
            .means("In the place of url: a JSON Web Key Set, read at a start and at a reload.")
        OutboundKeys.intervals(\.intervalMin, \.intervalMax, "the keys")
        OutboundKeys.reaching(by: \.proxy)
        Key("timeout", \.timeout, .time(.milliseconds(100) ... .seconds(300)))
            .means("Of a call, from the name's look-up to the last byte.")
    }.checked { OutboundKeys.checkIntervals($0, least: $1.intervalMin, most: $1.intervalMax) }

    /// The keys that mean nothing beside a file.
    fileprivate static let fetchingKeys = keys.names.filter { $0 != "url" && $0 != "file" }
}
