import AppAttest
import Encodings
import KeyStore
import RequestBinding
import Signatures
import SoftwareAuthenticator
import Tokens

extension FuzzTarget {
    private static let now: Int64 = 1_767_225_600
    private static let table = SessionTable()

    /// A session's id; there is none if the software device fails.
    private static let id: [UInt8] = {
        let appID = "TEAM123456.com.example.shop"
        let authority = SoftwareAuthority(
            seed: Array("fuzz".utf8),
            madeAt: UnixTime(seconds: now)
        )
        let device = SoftwareDevice(
            authority: authority,
            appID: appID,
            environment: .production,
            shape: .beforeTwentySeven
        )
        var key = device.makeKey()
        let clientData = Array("open".utf8)
        let assertion = try? UnverifiedAssertion(bytes: key.assertion(clientData: clientData))
            .verified(
                clientData: clientData,
                key: key.publicKey,
                app: AppIDHash(appID: appID),
                after: .zero
            )
        return assertion.map { table.open(key.keyID, VerifiedEvidence($0), now: now).id } ?? []
    }()

    /// Answers a process before, whose sessions are others; there is none if the table fails.
    private static let service: SuccessorService? = {
        guard let keys = try? KeyTable(journal: MemoryJournal()) else { return nil }
        let decider = Decider(
            keys: keys,
            challenges: ChallengeIssuer(capacity: 1_024),
            sessions: SessionTable()
        )
        return SuccessorService(decider, tokens: NoTokens())
    }()

    /// An id from nowhere is unknown, and so is a real one with any bit changed. A number has one
    /// spelling.
    static func session(_ bytes: [UInt8]) {
        let id = id
        demand(isOpen(id), "a real session is open")
        demand(bytes == id || !isOpen(bytes), "nobody can make an id up")
        var changed = id
        for (index, byte) in bytes.prefix(id.count).enumerated() { changed[index] ^= byte }
        if bytes.count > id.count { changed += bytes.dropFirst(id.count) }
        demand(changed == id || !isOpen(changed), "a changed id is unknown")
        if let number = SequenceNumber(text: bytes.span) {
            demand(Array(number.text.utf8) == bytes, "a number has one spelling")
        }
        handedOver(bytes)
    }

    /// What the process before says in an upgrade is read like anybody's bytes: a state that is
    /// taken can be handed on, and says the same there. A question is answered or is none.
    private static func handedOver(_ bytes: [UInt8]) {
        if let taken = try? SessionTable(goingOnFrom: bytes) {
            let state = taken.state
            let next = try? SessionTable(goingOnFrom: state)
            demand(next?.state == state, "a state that is taken goes on")
        }
        // The real state with some bits changed, which gets further than bytes from nowhere.
        var state = table.state
        for (index, byte) in bytes.enumerated() where index + 40 < state.count {
            state[index + 40] ^= byte
        }
        if let taken = try? SessionTable(goingOnFrom: state) {
            demand(taken.count(now: now) <= 1, "a state has no more sessions than it says")
        }
        service?.answer(bytes) { _ in }
    }

    private static func isOpen(_ id: [UInt8]) -> Bool {
        if case .live = table.find(id.span, now: now) { true } else { false }
    }
}

/// No device shows a token here.
private struct NoTokens: TokenClaiming {
    func claim(_: SHA256Digest, now _: Int64) -> TokenClaim { .full }
    func release(_: SHA256Digest) {}
}
