import HTTPWire
package import Parties
package import Rules

/// A proof of the section `proofs`.
package struct ProofSettings: Sendable {
    package let proof: TokenProof
    /// How its tokens are checked.
    package let settings: any ProofPartySettings

    /// What differs in another proof of the same name. Of secrets it tells only that they differ.
    static let form = ValueForm<[ProofSettings]>.named(
        { $0.proof.name },
        changes: { old, new, keyPath in
            let words = (old.proof.onError.rawValue, new.proof.onError.rawValue)
            let places = (old.proof.place.text, new.proof.place.text)
            return [
                SettingChange(keyPath: "\(keyPath).field", from: places.0, to: places.1),
                SettingChange(keyPath: "\(keyPath).on_error", from: words.0, to: words.1),
            ].filter { $0.from != $0.to } + old.settings.changes(toAny: new.settings, at: keyPath)
        }
    )
}

/// A proof as the file states it, before its files are read.
struct StatedProof {
    private static let keys = Keys<Self> {
        Key("kind").means("The kind of the tokens.")
        Key("field").means("The field that has the token; Authorization with the scheme Bearer.")
        Key("cookie").means("In its place: the cookie that has the token.")
        Key("on_error").means("What happens when a token can't be checked. Without it, refuse.")
    }

    let name: Located<String>
    private let reader: MappingReader
    /// The party that `kind` names.
    private let party: (any ProofParty.Type)?
    private let place: TokenProof.Place?
    private let onError: Located<DependencyErrorRule>?
    private let draft: (any ProofDraft)?

    /// The proofs of the file, in their order.
    ///
    /// - parties: those that `kind` may name.
    static func all(_ reader: MappingReader, _ parties: [any ProofParty.Type]) -> [StatedProof] {
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
        return members.compactMap { StatedProof($0, parties, log: reader.log) }
    }

    /// The most proofs of a file.
    private static let countMax = 32

    private init?(
        _ member: SourceNode.Member,
        _ parties: [any ProofParty.Type],
        log: ProblemLog
    ) {
        let keyPath = "proofs.\(member.key)"
        let names = Self.keys.names + parties.flatMap { $0.keyNames }
        guard let reader = MappingReader(member.value, keyPath, keys: names, log: log) else {
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
        let kinds = parties.map { $0.kind }
        let use = kinds.joined(separator: " | ")
        reader.require("kind", use: "kind: \(use)")
        let meant = reader.value("kind", use: use, words: kinds) { kinds.firstIndex(of: $0) }?.value
        party = meant.map { parties[$0] }
        onError = reader.word("on_error")
        place = Self.place(reader, usual: party?.field)
        // Several kinds have keys of one name.
        let drafts = parties.enumerated().map { index, party in
            let own = meant == nil || meant == index ? reader : reader.emptied
            return party.draft(own, name: member.key, isMeant: meant == index)
        }
        draft = meant.map { drafts[$0] }
        if let party { Self.checkIdle(reader, party, among: parties) }
    }

    /// Reports keys of other kinds.
    private static func checkIdle(
        _ reader: MappingReader,
        _ own: any ProofParty.Type,
        among parties: [any ProofParty.Type]
    ) {
        var seen = Set(own.keyNames)
        for key in parties.flatMap({ $0.keyNames })
        where reader.has(key) && seen.insert(key).inserted {
            let kinds = parties.filter { $0.keyNames.contains(key) }.map { $0.kind }
            reader.error(
                key,
                found: "it with kind: \(own.kind), where it has no effect",
                use: "kind: \(kinds.joined(separator: " or ")), or no \(key)"
            )
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
            guard let name = TextForm.fieldName(text).map({ Array($0.utf8) }) else {
                return nil
            }
            let kind = FieldKind(name: name)
            let isFree = kind == .other || kind == .authorization || text.lowercased() == usual
            return isFree ? name : nil
        }
        let cookie = reader.value("cookie", use: "the name of a cookie") { text -> [UInt8]? in
            let name = Array(text.utf8)
            let isToken = TextForm.fieldName(text) != nil || text.contains("_")
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
                needsStore: draft?.needsStore ?? true
            )
        }
    }

    /// Whether its tokens say nothing without the signature of a key.
    var isBound: Bool { party?.isBound ?? false }

    /// The complete proof; `nil` where it has an error, which was reported.
    func validated(_ proof: TokenProof, _ files: NamedFiles, hasStore: Bool) -> ProofSettings? {
        let settings: (any ProofPartySettings)? = draft?.validated(files, hasStore: hasStore)
        return settings.map { ProofSettings(proof: proof, settings: $0) }
    }
}

extension [StatedProof] {
    /// The complete proofs; those with an error, which was reported, are left out.
    func validated(_ files: NamedFiles, hasStore: Bool) -> [ProofSettings] {
        enumerated().compactMap { index, stated in
            stated.proof(index: index).flatMap {
                stated.validated($0, files, hasStore: hasStore)
            }
        }
    }
}
