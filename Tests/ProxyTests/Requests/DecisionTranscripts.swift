import HTTPWire
import KeyStore
import Rules
import Verification

@testable import Proxy

// Requests that another proxy asks about: answered where they would go to an origin.
extension Transcript {
    private static let asking = asking(.whole)

    private static func asking(_ content: AskedContent) -> [Row] {
        [on(.decides(content)), on(.routed)]
    }

    private static let allows: Flow.Action = .answer(.allowed, .none, .goesOn)

    private static func refuses(
        _ refusal: Refusal,
        _ fate: ClientFate = .goesOn
    ) -> Flow.Action {
        .answer(.refused(refusal), .none, fate)
    }

    static let decisions: [Transcript] = [
        Transcript("a request that nobody judges is allowed", .get, .off, ends: .nothing) {
            asking
            on(.unjudged, allows)
        },
        Transcript("a request that passes is allowed", .get, .enforcing, ends: .nothing) {
            asking
            on(.judged(.pass), allows)
        },
        Transcript("a request that is refused is not allowed", .get, .enforcing, ends: .nothing) {
            asking
            on(.judged(.refused), .answer(.refused(.assertionMissing), .none, .goesOn))
        },
        Transcript("a client that is observed is allowed", .get, .observing, ends: .nothing) {
            asking
            on(.judged(.refused, .observed), allows)
        },
        Transcript("a rule that denies allows nothing", .get, .denying, ends: .nothing) {
            asking
            on(.denied, .answer(.refused(.noRule), .none, .goesOn))
        },
        Transcript("it is allowed when the counter is stored", .get, .enforcing, ends: .nothing) {
            asking
            on(.judged(.unstored), .awaitCommit(.sample))
            on(.committed(.admitted), allows)
        },
        Transcript("it is allowed when Apple has answered", .get, .checking, ends: .nothing) {
            asking
            on(.judged(.pass), .ask(.device))
            on(.deviceAnswered(.bits(.neverSet)), allows)
        },
        Transcript("a path without a meaning is not allowed", .get, .enforcing, ends: .nothing) {
            asking
            on(.malformed(.pathControl), .answer(.malformed(.pathControl), .none, .goesOn))
        },
        Transcript("content that nobody judges is read first", .chunked, .off, ends: .nothing) {
            asking
            on(.unjudged, .skim)
            on(.contentReady, .readContent)
            on(.received(5000), takes: .skim)
            on(.contentRead(isLast: false), .none)
            on(.received(1), takes: .skim)
            on(.contentRead(isLast: true), allows)
        },
        Transcript("held content is judged and not given", .post, .holding, ends: .nothing) {
            asking
            on(.contentAwaited(), .hold)
            on(.received(100, isLast: true), takes: .hold)
            on(.contentRead(isLast: true), .judgeContent)
            on(.judged(.unstored), .awaitCommit(.sample))
            on(.committed(.admitted), allows)
        },
        Transcript("held content that differs is refused", .post, .holding, ends: .nothing) {
            asking
            on(.contentAwaited(), .hold)
            on(.received(100, isLast: true), takes: .hold)
            on(.contentRead(isLast: true), .judgeContent)
            on(.judged(.refused), refuses(.assertionMissing))
        },
        Transcript("less content than was stated is refused", .chunked, .holding, ends: .nothing) {
            asking(.counted(100))
            on(.contentAwaited(), .hold)
            on(.received(99), takes: .hold)
            on(.contentRead(isLast: true), refuses(.contentUnseen))
        },
        Transcript("as much content as was stated is judged", .chunked, .holding, ends: .nothing) {
            asking(.counted(100))
            on(.contentAwaited(), .hold)
            on(.received(100), takes: .hold)
            on(.contentRead(isLast: true), .judgeContent)
            on(.judged(.pass), allows)
        },
        Transcript("too much content is not allowed", .chunked, .holding, ends: .nothing) {
            asking
            on(.contentAwaited(), .hold)
            on(.received(2001), takes: .stop(refuses(.contentTooLarge, .lingers)))
        },
        Transcript(
            "too much content is read on where it is observed",
            .chunked,
            .holding,
            ends: .nothing
        ) {
            asking
            on(.contentAwaited(.observed), .hold)
            on(.received(2001), takesAnew: .append)
            on(.contentRead(isLast: false), .skim)
            on(.received(2001), takes: .skim)
            on(.contentRead(isLast: true), allows)
        },
        Transcript(
            "content without room that ends is allowed where it is observed",
            .chunked,
            .holding,
            ends: .nothing
        ) {
            asking
            on(.contentAwaited(.observed), .hold)
            on(.received(10), takes: .hold)
            on(.holdFailed(.heldFull), takesAnew: .append)
            on(.contentRead(isLast: true), allows)
        },
        Transcript("streamed content has to have its digest", .post, .limited, ends: .nothing) {
            asking
            on(.judged(.digested), .skim)
            on(.received(60), takes: .skim)
            on(.contentRead(isLast: false), .none)
            on(.received(40, isLast: true), takes: .skim)
            on(.contentRead(isLast: true), .judgeEnd)
            on(.endJudged(.refuse(.digestMismatch)), takes: .stop(refuses(.digestMismatch)))
        },
        Transcript("streamed content with its digest is allowed", .post, .limited, ends: .nothing) {
            asking
            on(.judged(.digested), .skim)
            on(.received(100, isLast: true), takes: .skim)
            on(.contentRead(isLast: true), .judgeEnd)
            on(.endJudged(nil), takes: .stop(allows))
        },
        Transcript("less streamed content than was stated", .chunked, .limited, ends: .nothing) {
            asking(.counted(101))
            on(.judged(.digested), .skim)
            on(.received(100), takes: .skim)
            on(.contentRead(isLast: true), refuses(.contentUnseen))
        },
        Transcript("too much streamed content", .chunked, .limited, ends: .nothing) {
            asking
            on(.judged(.digested), .skim)
            on(.received(151), takes: .stop(refuses(.contentTooLarge, .lingers)))
            on(.contentRead(isLast: true), .none)
        },
        Transcript("content is read after the counter is stored", .post, .enforcing, ends: .nothing)
        {
            asking
            on(.judged(.unstored), .awaitCommit(.sample))
            on(.committed(.admitted), .skim)
            on(.received(100, isLast: true), takes: .skim)
            on(.contentRead(isLast: true), allows)
        },
        Transcript("content is read after Apple has answered", .post, .checking, ends: .nothing) {
            asking
            on(.judged(.pass), .ask(.device))
            on(.deviceAnswered(.bits(.neverSet)), .skim)
            on(.received(100, isLast: true), takes: .skim)
            on(.contentRead(isLast: true), allows)
        },
        Transcript("content that does not come", .post, .off, ends: .nothing) {
            asking
            on(.unjudged, .skim)
            on(.clientBroke, closesClient: true)
            on(.contentTimedOut, .answer(.contentTimeout, .none, .lingers))
        },
        Transcript("a proxy that goes while its content is read", .post, .off, ends: .nothing) {
            asking
            on(.unjudged, .skim)
            on(.clientClosed, .end(.none))
            on(.contentRead(isLast: true), .none)
        },
        Transcript("content of a refused request is skipped", .post, .enforcing, ends: .nothing) {
            asking
            on(.judged(.refused), refuses(.assertionMissing, .skips))
        },
    ]
}
