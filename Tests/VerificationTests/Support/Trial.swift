import AppAttest
import Cryptography
import HTTPWire
import KeyStore
import RequestBinding
import Rules
import SoftwareAuthenticator
import Testing
import Tokens
import Verification

/// A judge with all that is around it, in memory: keys, challenges, a clock that stands.
struct Trial {
    static let appID = "TEAM123456.com.example.shop"
    static let otherAppID = "TEAM123456.com.example.other"
    static let start = UnixTime(seconds: 1_790_000_000)
    static let authority = SoftwareAuthority(seed: Array("enforcement".utf8), madeAt: start)

    let journal: MemoryJournal
    let keys: KeyTable
    let issuer: ChallengeIssuer
    let sessions: SessionTable
    let policies: [AppPolicy]
    var judge: Judge
    var now = Trial.start
    /// Monotonic nanoseconds.
    var tick: UInt64 = 0

    /// - `changesMax`: how many changes the writer takes; 0 for a store that has no room.
    init(
        _ policies: [AppPolicy] = [Trial.policy()],
        journal: MemoryJournal = MemoryJournal(),
        changesMax: Int = 1_000
    ) throws {
        self.journal = journal
        var limits = Committer.Limits()
        limits.changesMax = changesMax
        keys = try KeyTable(journal: journal, limits: limits)
        issuer = ChallengeIssuer(
            secrets: .init(own: Array(repeating: 7, count: 32)),
            epoch: 1
        )
        self.policies = policies
        sessions = SessionTable(secret: Array(repeating: 8, count: 32))
        judge = Judge(
            apps: policies,
            decider: Decider(keys: keys, challenges: issuer, sessions: sessions)
        )
    }

    static func policy(
        _ id: String = appID,
        _ environments: Set<AttestationEnvironment> = [.production],
        _ edit: (inout AppPolicy) -> Void = { _ in }
    ) -> AppPolicy {
        var policy = AppPolicy(id: id, environments: environments)
        edit(&policy)
        return policy
    }

    /// A rule of the line form over everything, with a required challenge, whose content streams.
    static func rule(
        _ mode: Mode = .enforce,
        _ edit: (inout Rule.Demands) -> Void = { _ in }
    ) -> Rule {
        var demands = Rule.Demands(salt: "place-order", mode: mode)
        demands.signing = .lines(.all, headers: [])
        demands.challenge = .required
        demands.body = .streamed(limit: .mebibytes(1))
        edit(&demands)
        return Rule(
            id: "place-order",
            index: 0,
            match: .all,
            origin: OriginIndex(0),
            demands: demands
        )
    }

    static func device(
        appID: String = Trial.appID,
        shape: DeviceShape = .beforeTwentySeven
    ) -> SoftwareDevice {
        SoftwareDevice(
            authority: authority,
            appID: appID,
            environment: .production,
            shape: shape
        )
    }

    /// A key that is in the table.
    func enrolledKey(
        _ device: SoftwareDevice = Trial.device(),
        appID: String = Trial.appID,
        as environment: KeyEnvironment = .production,
        counters: CounterState = CounterState()
    ) -> SoftwareKey {
        let key = device.makeKey()
        var record = KeyRecord(
            keyID: key.keyID,
            appID: appID,
            environment: environment,
            publicKey: key.publicKey,
            enrolledAt: now.seconds
        )
        record.counters = counters
        journal.add(record)
        return key
    }

    func challenge(_ purpose: ChallengePurpose = .assertion) throws -> String {
        String(decoding: issuer.issue(purpose, now: now.seconds), as: UTF8.self)
    }

    /// A request with a fresh challenge.
    func request(
        _ method: String = "POST",
        _ target: String = "/v1/orders?dry=1",
        content: String = #"{"item":7}"#
    ) throws -> SoftwareKey.Request {
        SoftwareKey.Request(
            method: method,
            target: target,
            content: Array(content.utf8),
            challenge: try challenge()
        )
    }

    // MARK: Judging

    mutating func open(
        _ wire: Wire,
        _ rule: Rule,
        mayVerify: Bool = true,
        content: [UInt8] = [],
        isExact: Bool = true
    ) throws -> HeadVerdict {
        var head = RequestHead()
        let bytes = wire.head
        try head.read(bytes.span, isSecure: false, limits: HeadLimits())
        var circumstances = circumstances
        (circumstances.mayVerify, circumstances.isExact) = (mayVerify, isExact)
        return judge.open(
            head,
            bytes.span,
            rule: rule,
            content: content.span,
            in: circumstances
        )
    }

    var circumstances: RequestCircumstances { RequestCircumstances(now: now, tick: tick) }

    /// Judges a request to the end, its content held where the judge asks for it.
    mutating func judge(_ wire: Wire, _ rule: Rule) throws -> Verdict {
        switch try open(wire, rule) {
        case .judged(let verdict): return verdict
        case .hold(let proof): return close(proof, wire, rule)
        }
    }

    /// Judges a request whose content was held.
    mutating func close(_ proof: Proof, _ wire: Wire, _ rule: Rule) -> Verdict {
        judge.close(
            proof,
            content: Content(wire.content),
            rule: rule,
            in: circumstances
        )
    }

    /// Content that was held.
    final class Content: WholeContent {
        let start: [UInt8]
        /// How often it was asked for.
        private(set) var readings = 0

        init(_ bytes: [UInt8]) { start = bytes }

        func digest() -> SHA256Digest { SHA256.digest(of: start) }

        func text() -> [UInt8]? {
            readings += 1
            return start
        }
    }

    /// Signs a request as the rule asks, lets it be changed on the way, and judges it.
    mutating func send(
        _ request: SoftwareKey.Request,
        by key: inout SoftwareKey,
        _ rule: Rule = Trial.rule(),
        damage: AssertionDamage? = nil,
        onTheWay edit: (inout Wire) -> Void = { _ in }
    ) throws -> Verdict {
        let proof = key.proof(of: request, signing: rule.signing, damage: damage)
        var wire = Wire(request, proof)
        edit(&wire)
        return try judge(wire, rule)
    }

    /// Lets the store fail, now that its keys were read.
    mutating func breakStore() throws {
        let unreadable = UnreadableJournal(journal)
        let keys = try KeyTable(journal: unreadable)
        unreadable.breakDown()
        judge = Judge(
            apps: policies,
            decider: Decider(keys: keys, challenges: issuer, sessions: sessions)
        )
    }

    /// What is stored of a key now.
    func counters(_ key: SoftwareKey) throws -> CounterState {
        guard case .known(let stored) = keys.find(key.keyID) else {
            throw Absent()
        }
        return stored.counters
    }

    struct Absent: Error {}
}
