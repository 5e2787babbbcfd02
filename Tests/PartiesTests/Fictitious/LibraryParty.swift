import Encodings
import KeyStore
import Rules
import Services
import Signatures
import Synchronization
import Telemetry
import Verification

@testable import Parties

/// Libraries, each of which is a proof of `kind: library`.
final class LibraryParty: ProofParty {
    private let line: ProofCalls<LibraryCalls>
    private let counter = CardCounter()

    init(_ settings: [LibrarySettings], _ context: PartyContext) {
        line = ProofCalls(named: "library", settings, context)
    }

    func checker(_ settings: LibrarySettings, _ apps: [AppPolicy]) -> any TokenChecker {
        LibraryCheck(settings: settings, calls: line, counter: counter)
    }

    func serves(_ settings: [LibrarySettings]) { line.loaded(settings) }

    var calls: ProofCallFacts { line.facts }

    func start() { counter.open() }

    var facts: [any PartyFacts] { [LibraryFacts(cards: counter.count, isOpen: counter.isOpen)] }

    func stop(_ ended: @escaping @Sendable () -> Void) { line.stop(ended) }
}

/// Counts the cards that were shown, once the library is open.
private final class CardCounter: Sendable {
    private let cards = Atomic<UInt64>(0)
    private let hasStarted = Atomic(false)

    var isOpen: Bool { hasStarted.load(ordering: .relaxed) }

    func open() { hasStarted.store(true, ordering: .relaxed) }

    var count: UInt64 { cards.load(ordering: .relaxed) }

    func add() { cards.add(1, ordering: .relaxed) }
}

private struct LibraryFacts: PartyFacts {
    let cards: UInt64
    let isOpen: Bool

    func write(into out: inout Exposition) {
        out.gauge("library_open", isOpen ? 1 : 0, help: "1 once the gateway has started the party.")
        out.counter("library_cards_total", cards, help: "Cards that were shown.")
    }

    func write(into out: inout JSONWriter) { out.member("library_cards", cards) }
}

private struct LibraryCheck: TokenChecker {
    let settings: LibrarySettings
    let calls: ProofCalls<LibraryCalls>
    let counter: CardCounter

    func check(
        _ token: ShownToken,
        _ found: @escaping @Sendable (TokenFinding) -> Void
    ) -> TokenChecking {
        counter.add()
        let (name, client) = (settings.name, TokenClient(nil, at: token.address))
        let shown = ProofCalls<LibraryCalls>.Shown(token.text, of: name, client)
        if let checking = calls.begin(shown, settings.calls.used) { return checking }
        let end = token.now.seconds + 3_600
        let timeout = settings.calls.timeout
        calls.send(LibraryCall(proof: name, card: token.text, timeout: timeout)) { reply in
            let verdict = LibraryVerdict(reply, settings)
            calls.finish(shown, isSpent: verdict == .good)
            calls.count(verdict.word, of: name)
            guard verdict == .good else { return found(verdict.finding) }
            calls.spend(SpentToken(shown.digest, end: end), fresh: .good, found)
        }
        return .later
    }
}
