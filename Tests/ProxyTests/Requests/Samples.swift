import AppAttest
import Cryptography
import HTTPWire
import KeyStore
import Rules
import Verification

@testable import struct KeyStore.CommitTicket
@testable import Proxy

extension RequestFacts {
    static let get = RequestFacts(.get)
    static let post = RequestFacts(.post, .length(100))
    static let put = RequestFacts(.put, .length(100))
    static let chunked = RequestFacts(.put, .chunked)
    static let upgrade = RequestFacts(.get, .none, asking: .upgrade)
}

extension Rule {
    static let off = sample(.off)
    static let observing = sample(.observe)
    static let enforcing = sample(.enforce)
    static let denying = sample(.deny)

    static let holding = sample(.enforce, .held(limit: ByteCount(2000), memory: ByteCount(1000)))
    static let limited = sample(.enforce, .streamed(limit: ByteCount(150)))
    static let opening = openingSessions(apps: [])
    static let forwarding = sample(.enforce, onError: .forward)

    static let checking = sample(.enforce, device: device(.refuse))
    static let checkingKindly = sample(.enforce, device: device(.forward))
    static let checkingAndForwarding = sample(
        .enforce,
        onError: .forward,
        device: device(.refuse)
    )
    static let checkingHeld = sample(
        .enforce,
        .held(limit: ByteCount(2000), memory: ByteCount(1000)),
        device: device(.refuse)
    )

    /// Refuses devices whose bit 0 is set.
    private static func device(_ onError: DependencyErrorRule) -> DeviceRule {
        DeviceRule(refused: Set(DeviceBits.all.filter(\.bit0)), onError: onError)
    }

    private static func sample(
        _ mode: Mode,
        _ body: BodyRule = .none,
        onError: DependencyErrorRule = .refuse,
        device: DeviceRule? = nil
    ) -> Rule {
        var demands = Demands(salt: "sample", mode: mode)
        demands.device = device
        demands.body = body
        demands.onError = onError
        let origin = mode == .deny ? nil : OriginIndex(0)
        return Rule(
            id: "sample",
            index: 0,
            match: RouteMatch(),
            origin: origin,
            demands: demands
        )
    }
}

extension Verdict {
    static let pass = proven(.complete)
    static let keyed: Verdict = {
        var verdict = pass
        verdict.keyID = KeyID(SHA256.digest(of: []))
        return verdict
    }()
    static let refused = Verdict(.refuse(.assertionMissing))

    /// A pass whose counter has to be on disk first.
    static let unstored: Verdict = {
        var verdict = pass
        verdict.pending = .durability(.sample)
        return verdict
    }()

    /// A pass that the store has still to decide about.
    static let undecided: Verdict = {
        var verdict = proven(.signed)
        verdict.pending = .verdict(.sample)
        return verdict
    }()

    /// The store does not answer.
    static let unavailable = Verdict(.failure(.store))

    /// The store is asked for the key.
    static let sought: Verdict = {
        var verdict = Verdict(.failure(.store))
        verdict.pending = .key(.sample)
        return verdict
    }()

    /// A pass that holds if the content has the digest that the head states.
    static let digested: Verdict = {
        var verdict = pass
        verdict.expectedDigest = SHA256.digest(of: [])
        return verdict
    }()

    private static func proven(_ level: ProofLevel) -> Verdict {
        var verdict = Verdict(.pass)
        verdict.level = level
        return verdict
    }
}

extension CommitTicket {
    static let sample = CommitTicket(number: 1)
}
