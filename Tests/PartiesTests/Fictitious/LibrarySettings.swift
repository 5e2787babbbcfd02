import OutboundCalls
import SettingsReading

@testable import Parties

/// A proof of `kind: library`: a card that a library knows.
struct LibrarySettings: Hashable, ProofPartySettings {
    typealias Draft = LibraryDraft

    static let kind = "library"
    static let field: String? = "x-library-card"

    let name: String
    var url: String
    /// The branch that has to have given the card out; `nil` for any.
    var branch: String?
    var calls = TokenCallSettings()
}

struct LibraryDraft: Declared, ProofDraft {
    static let keys = Keys<Self> {
        Key("url", orNone: \.url, OutboundKeys.address).means("Where the library is asked.")
        Key("branch", orNone: \.branch, .text("a branch") { $0.isEmpty ? nil : $0 })
            .means("The branch that has given the card out.", otherwise: "any")
        TokenCallSettings.keys.all.map { Key($0, of: \.calls) }
    }

    static var keyNames: [String] { keys.names }

    private let reader: MappingReader
    private let name: String
    private var url: String?
    private var branch: String?
    private var calls = TokenCallSettings()

    init(_ reader: MappingReader, name: String, isMeant: Bool) {
        (self.reader, self.name) = (reader, name)
        if isMeant { reader.require("url", use: "url: https://library.example/cards") }
        Self.keys.read(reader, into: &self)
    }

    func validated(_ files: NamedFiles, hasStore: Bool) -> LibrarySettings? {
        guard let url else { return nil }
        var settings = LibrarySettings(name: name, url: url, branch: branch, calls: calls)
        settings.calls.roots = files.roots(reader)
        return settings
    }
}
