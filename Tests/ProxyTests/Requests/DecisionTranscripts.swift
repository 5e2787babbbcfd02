import HTTPWire
import KeyStore
import Rules
import Verification

@testable import Proxy

// Requests that another proxy asks about: answered where they would go to an origin.
extension Transcript {
    private static let asking: [Row] = [on(.decides), on(.routed)]

    private static let allows: Flow.Action = .answer(.allowed, .none, .goesOn)

    static let decisions: [Transcript] = [
        Transcript("a request that nobody judges is allowed", .get, .off, ends: .nothing) {
            asking
            on(.unjudged, allows)
        },
        Transcript("a request that passes is allowed", .get, .enforcing, ends: .nothing) {
            asking
            on(.ruled(.pass), allows)
        },
        Transcript("a request that is refused is not allowed", .get, .enforcing, ends: .nothing) {
            asking
            on(.ruled(.refused), .answer(.refused(.assertionMissing), .none, .goesOn))
        },
        Transcript("a client that is observed is allowed", .get, .observing, ends: .nothing) {
            asking
            on(.ruled(.refused, .observed), allows)
        },
        Transcript("a rule that denies allows nothing", .get, .denying, ends: .nothing) {
            asking
            on(.denied, .answer(.refused(.noRule), .none, .goesOn))
        },
        Transcript("it is allowed when the counter is stored", .get, .enforcing, ends: .nothing) {
            asking
            on(.ruled(.unstored), .awaitCommit(.sample))
            on(.committed(.admitted), allows)
        },
        Transcript("it is allowed when Apple has answered", .get, .checking, ends: .nothing) {
            asking
            on(.ruled(.pass), .askDevice)
            on(.deviceAnswered(.bits(.neverSet)), allows)
        },
        Transcript("a path with two readings is not allowed", .get, .enforcing, ends: .nothing) {
            asking
            on(.malformed(.pathAmbiguous), .answer(.malformed(.pathAmbiguous), .none, .goesOn))
        },
    ]
}
