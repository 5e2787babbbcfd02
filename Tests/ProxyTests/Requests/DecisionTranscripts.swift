import HTTPWire
import KeyStore
import Rules
import Verification

@testable import Proxy

// Requests that another proxy asks about: answered where they would go to an origin.
extension Transcript {
    private static let asking: [Row] = [
        on(.headRead, .countRequest),
        on(.requestCounted, .locate),
        on(.located(.decision), .findRule),
    ]

    private static let allows: Flow.Action = .answer(.allowed, .none, .goesOn)

    static let decisions: [Transcript] = [
        Transcript("a request that nobody judges is allowed", .get, .off, ends: .nothing) {
            asking
            on(.routed(whole: nil), allows)
        },
        Transcript("a request that passes is allowed", .get, .enforcing, ends: .nothing) {
            asking
            on(.routed(whole: nil), .judgeHead)
            on(.ruled(.pass), allows)
        },
        Transcript("a request that is refused is not allowed", .get, .enforcing, ends: .nothing) {
            asking
            on(.routed(whole: nil), .judgeHead)
            on(.ruled(.refused), .answer(.refused(.assertionMissing), .none, .goesOn))
        },
        Transcript("a client that is observed is allowed", .get, .observing, ends: .nothing) {
            asking
            on(.routed(whole: nil), .judgeHead)
            on(.ruled(.refused, .observed), allows)
        },
        Transcript("a rule that denies allows nothing", .get, .denying, ends: .nothing) {
            asking
            on(.routed(whole: nil), .answer(.refused(.noRule), .none, .goesOn))
        },
        Transcript("it is allowed when the counter is stored", .get, .enforcing, ends: .nothing) {
            asking
            on(.routed(whole: nil), .judgeHead)
            on(.ruled(.unstored), .awaitCommit(.sample))
            on(.committed(.admitted), allows)
        },
        Transcript("it is allowed when Apple has answered", .get, .checking, ends: .nothing) {
            asking
            on(.routed(whole: nil), .judgeHead)
            on(.ruled(.pass), .askDevice)
            on(.deviceAnswered(.bits(.neverSet)), allows)
        },
        Transcript("a path with two readings is not allowed", .get, .enforcing, ends: .nothing) {
            asking
            on(.unroutable(.pathAmbiguous), .answer(.malformed(.pathAmbiguous), .none, .goesOn))
        },
        Transcript("a question that names no request is answered", .get, ends: .nothing) {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.serviceRefused, .answer(.service, .none, .goesOn))
        },
    ]
}
