import HTTPWire
import KeyStore
import Rules
import Verification

@testable import Proxy

extension TokenProof {
    static let check = TokenProof(name: "check", index: 0, place: .field(Array("x-check".utf8)))
    static let human = TokenProof(name: "human", index: 1, place: .cookie(Array("human".utf8)))
}

extension Rule {
    static let accepting = naming { demands in
        demands.accept = AcceptRule(assertions: true, sessions: false, tokens: [.check, .human])
    }
    static let asking = naming { $0.also = [.check] }

    private static func naming(_ change: (inout Demands) -> Void) -> Rule {
        var demands = Demands(salt: "tokens", mode: .enforce)
        change(&demands)
        return Rule(
            id: "tokens",
            index: 0,
            match: RouteMatch(),
            origin: OriginIndex(0),
            demands: demands
        )
    }
}

// What is asked about a request's tokens.
extension Transcript {
    static let tokens: [Transcript] = [
        Transcript("a token is asked about before a refusal", .get, .accepting, ends: .whole) {
            judging
            on(.judged(.refused), .ask(.token(.check)))
            on(.contentReady, .none)
            on(.tokenAnswered(.check, .missing), .ask(.token(.human)))
            on(.tokenAnswered(.human, .good), .admit)
            given()
            response(.drop)
        },
        Transcript("no token is good", .get, .accepting, ends: .nothing) {
            judging
            on(.judged(.refused), .ask(.token(.check)))
            on(.tokenAnswered(.check, .expired), .ask(.token(.human)))
            on(
                .tokenAnswered(.human, .missing),
                .answer(.refused(.proofExpired), .none, .goesOn)
            )
        },
        Transcript("an observed request is asked too", .get, .accepting, ends: .whole) {
            judging
            on(.judged(.refused, .observed), .ask(.token(.check)))
            on(.tokenAnswered(.check, .spent), .ask(.token(.human)))
            on(.tokenAnswered(.human, .invalid), .admit)
            given()
            response(.drop)
        },
        Transcript("a signed request costs no check", .get, .accepting, ends: .whole) {
            judging
            on(.judged(.pass), .admit)
            given()
            response(.drop)
        },
        Transcript("a commit that refuses has the tokens asked", .get, .accepting, ends: .whole) {
            judging
            on(.judged(.undecided), .awaitCommit(.sample))
            on(.committed(.refused(.replayed)), .ask(.token(.check)))
            on(.tokenAnswered(.check, .good), .admit)
            given()
            response(.drop)
        },
        Transcript("a token beside comes after the commit", .get, .asking, ends: .nothing) {
            judging
            on(.judged(.unstored), .awaitCommit(.sample))
            on(.committed(.admitted), .ask(.token(.check)))
            on(
                .tokenAnswered(.check, .missing),
                .answer(.refused(.proofMissing), .none, .goesOn)
            )
        },
        Transcript("a spending that takes too long is a failure", .get, .asking, ends: .nothing) {
            judging
            on(.judged(.pass), .ask(.token(.check)))
            on(.storingTimedOut, .answer(.refused(.proofUnavailable), .none, .goesOn))
            on(.tokenAnswered(.check, .good), .none)
        },
        Transcript("an answer that comes too late is none", .get, .accepting, ends: .whole) {
            judging
            on(.judged(.refused), .ask(.token(.check)))
            on(.storingTimedOut, .ask(.token(.human)))
            on(.tokenAnswered(.check, .good), .none)
            on(.tokenAnswered(.human, .good), .admit)
            given()
            response(.drop)
        },
    ]
}
