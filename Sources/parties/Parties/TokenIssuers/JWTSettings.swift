import Cryptography
import Encodings
import Rules
package import SettingsReading
package import Tokens

/// The settings of a proof of `kind: jwt`.
package struct JWTSettings: ProofPartySettings, Declared {
    package typealias Draft = Stated<JWTSettings>

    package static let kind = "jwt"

    /// Where the issuer's public keys come from.
    package enum Source: Sendable {
        /// A file, which is read at a start and at a reload.
        case set(TokenKeySet)
        /// An address that is asked again and again.
        case address(KeySetAddress)
    }

    /// The name of the proof.
    package let name: String
    package private(set) var terms = TokenTerms(issuer: "", audiences: [], algorithms: [])
    private var address = KeySetAddress()
    private var keySet: TokenKeySet?

    fileprivate init(name: String) { self.name = name }

    package func changes(to next: Self, at keyPath: String) -> [SettingChange] {
        Self.keys.changes(from: self, to: next, at: keyPath)
    }

    /// The address of its keys; `nil` where they are not fetched.
    var keySetAddress: KeySetAddress? {
        if case .address(let address) = keys { address } else { nil }
    }

    package var keys: Source { keySet.map { .set($0) } ?? .address(address) }

    /// In an order of their own.
    private var algorithms: [TokenAlgorithm] {
        get { TokenAlgorithm.allCases.filter(terms.algorithms.contains) }
        set { terms.algorithms = Set(newValue) }
    }

    package static let keys = Keys<Self> {
        Key("keys", \.address, .mapping).means("Where the issuer's public keys come from.")
        Key("issuer", \.terms.issuer, .text(textUse, text)).means("The iss claim, exactly.")
        Key("audience", \.terms.audiences, .oneOrMore(textUse, text))
            .means("Of which one has to be in the aud claim.")
        Key("typ", orNone: \.terms.type, .text(typeUse, type))
            .means("The typ of the token's header.", otherwise: "any")
        Key("algorithms", \.algorithms, .words())
            .means("The algorithms that are accepted, each with keys of its kind.")
        Key("leeway", \.terms.leeway, .wholeSeconds(.zero ... .seconds(TokenTerms.leewayMax)))
            .means("How far the issuer's clock may be from this one.")
        Key("max_age", orNone: \.terms.ageMax, .wholeSeconds(.seconds(1) ... .days(366)))
            .means("The greatest age by the iat claim.", otherwise: "any")
        Key("required", \.terms.required, .texts("names of claims", text: \.self, text))
            .means("Claims that have to be there.")
        Key("claims", \.terms.claims, claims).means("Claims that have to have one of some values.")
        Key("once", \.terms.use, use).means("jti: each token is good for one request.")
    }

    /// The keys without which a proof of this kind is none.
    fileprivate static func require(_ reader: MappingReader) {
        let algorithms = TokenAlgorithm.allCases.map(\.rawValue).joined(separator: ", ")
        reader.require("keys", use: "keys: { url: https://… } or { file: keys.json }")
        reader.require("issuer", use: "issuer: the text of the iss claim")
        reader.require("audience", use: "audience: a text of the aud claim, or a list")
        reader.require("algorithms", use: "algorithms: [\(algorithms)]")
    }

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

    private static let use = ValueForm<TokenTerms.Use>(
        { reader, key in
            reader.value(key, use: "jti", words: ["jti"]) { $0 == "jti" ? .once : nil }
        },
        text: { $0 == .once ? "jti" : "none" }
    )

    /// The most claims that a proof names.
    private static let claimsMax = 16

    private static let claimForm = "{ name: sub, values: [a, b] }"

    private static let claimKeys = Keys<TokenTerms.Claim> {
        Key("name").means("The claim's name.").mandatory(claimForm)
        Key("values").means("The values of which it has to have one.").mandatory(claimForm)
    }

    private static let claims = ValueForm<[TokenTerms.Claim]>(
        { reader, key in
            guard let nodes = reader.list(key, of: claimForm) else { return nil }
            if nodes.count > claimsMax {
                reader.error(key, found: "\(nodes.count) claims", use: "\(claimsMax) at most")
            }
            let claims = nodes.compactMap { claim($0, at: $1, reader.log) }
            return reader.located(key, claims)
        },
        text: { claims in
            let texts = claims.map { "\($0.name): \($0.values.joined(separator: " | "))" }
            return texts.isEmpty ? "none" : texts.joined(separator: ", ")
        }
    )

    private static func claim(
        _ node: SourceNode,
        at keyPath: String,
        _ log: ProblemLog
    ) -> TokenTerms.Claim? {
        let keys = claimKeys.names
        guard let inner = MappingReader(node, keyPath, keys: keys, log: log) else { return nil }
        claimKeys.note(inner)
        let name = inner.value("name", use: textUse, text)
        let values = inner.texts("values", use: textUse, text)
        guard let name, let values else { return nil }
        return TokenTerms.Claim(name.value, values.map(\.value))
    }

    /// The settings, with the file of keys read; `nil` where there is an error, which was reported.
    fileprivate func readingKeys(_ reader: MappingReader, _ files: NamedFiles) -> JWTSettings? {
        var settings = self
        guard let file = address.file else {
            guard !address.url.isEmpty else { return nil }
            settings.address.roots = reader.inner("keys", keys: []).flatMap(files.roots)
            return settings
        }
        let place = files.log.located(reader.path("keys.file"), file)
        settings.keySet = Self.keySet(place, files)
        return settings.keySet == nil ? nil : settings
    }

    private static func keySet(_ file: Located<String>, _ files: NamedFiles) -> TokenKeySet? {
        let path = files.path(of: file)
        func report(_ found: String) {
            files.log.error(
                file,
                found: "\(found) (\(path))",
                use: "a readable file with a JSON Web Key Set (RFC 7517 §5)"
            )
        }
        do {
            return try TokenKeySet(json: files.disk.contents(of: path, limit: TokenKeySet.bytesMax))
        } catch let fault as FileFault {
            if files.log.assumes(file, at: path, fault), let bytes = StandIn.keySet.bytes(for: path)
            {
                return try? TokenKeySet(json: bytes)
            }
            report(fault.found)
        } catch let fault as TokenKeySet.Fault {
            report("no set of keys, since \(fault.detail)")
        } catch {
            report("\(error)")
        }
        return nil
    }
}

extension Stated: ProofDraft where Section == JWTSettings {
    package static var keyNames: [String] { JWTSettings.keys.names }

    package init(_ reader: MappingReader, name: String, isMeant: Bool) {
        if isMeant { JWTSettings.require(reader) }
        self.init(reader, over: JWTSettings(name: name))
    }

    package var needsStore: Bool { value.terms.use == .once }

    package func validated(_ files: NamedFiles, hasStore: Bool) -> JWTSettings? {
        guard gives(["keys", "issuer", "audience", "algorithms"]) else { return nil }
        if let once = located("once", \.terms.use), !hasStore {
            reader.log.error(
                once,
                found: "it without a store, which remembers the tokens that were used",
                use: "store: { sqlite: portcullis.db }, or no once"
            )
        }
        return value.readingKeys(reader, files)
    }
}

/// Where a set of keys is fetched, and how often.
package struct KeySetAddress: Hashable, Sendable, Declared {
    package private(set) var url = ""
    /// In the place of ``url``: a file with the keys.
    fileprivate var file: String?
    /// Whatever the answer says, and however many tokens name an unknown key.
    package private(set) var intervalMin = Duration.seconds(60)
    package private(set) var intervalMax = Duration.seconds(21_600)
    /// `roots`: the certificates of a PEM file, instead of the system's; `nil` for the system's.
    package fileprivate(set) var roots: [UInt8]?
    package private(set) var proxy: String?
    /// From the name's look-up to the last byte.
    package private(set) var timeout = Duration.seconds(10)

    package static let keys = Keys<Self> {
        Key("url", \.url, OutboundKeys.address).means("Where the issuer's keys are fetched.")
        Key("file", orNone: \.file, .file("a file's path"))
            .means("In the place of url: a JSON Web Key Set, read at a start and at a reload.")
        OutboundKeys.intervals(least: \.intervalMin, most: \.intervalMax, of: "the keys")
        OutboundKeys.reaching(by: \.proxy)
        Key("timeout", \.timeout, .time(.milliseconds(100) ... .seconds(300)))
            .means("Of a call, from the name's look-up to the last byte.")
    }.checked { reader, address in
        OutboundKeys.checkIntervals(reader, least: address.intervalMin, most: address.intervalMax)
        guard reader.has("url") == reader.has("file") else {
            for key in fetchingKeys where reader.has("file") && reader.has(key) {
                reader.error(
                    key,
                    found: "it beside file, where it has no effect",
                    use: "url in place of file, or no \(key)"
                )
            }
            return
        }
        let found = reader.has("url") ? "url and file" : "neither url nor file"
        reader.log.error(reader, found: found, use: "one of the two")
        (address.url, address.file) = ("", nil)
    }

    /// The keys that mean nothing beside a file.
    private static var fetchingKeys: [String] {
        keys.names.filter { $0 != "url" && $0 != "file" }
    }
}

extension StandIn {
    /// A JSON Web Key Set with a key that was just made.
    fileprivate static let keySet = StandIn { _ in
        let point = P256PrivateKey().publicKey.x963
        var json = JSONWriter(.compact)
        json.object { json in
            json.objects("keys", of: [point]) { json, point in
                json.member("kty", "EC")
                json.member("crv", "P-256")
                json.member("kid", "assumed")
                json.member("x", Base64.urlText(point[1..<33]))
                json.member("y", Base64.urlText(point[33...]))
            }
        }
        return json.bytes
    }
}
