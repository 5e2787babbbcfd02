import HTTPWire
import Rules
import Verification

@testable import Proxy

// Content that streams to the origin.
extension Transcript {
    /// The verdict holds if the content has its digest.
    private static let digested: [Row] =
        routing + [on(.judged(.digested), .admit)] + opened()

    static let uploads: [Transcript] = [
        Transcript("content goes through piece by piece", .post, ends: .whole) {
            streaming()
            on(.received(60), takes: .send)
            on(.contentRead(isLast: false), .sendContent(.more))
            on(.contentReady, .readContent)
            on(.received(40, isLast: true), takes: .send)
            on(.contentRead(isLast: true), .sendContent(.last))
            on(.contentSent, .awaitResponse(.clear, .keep))
            on(.contentReady, .none)
            on(.contentTimedOut, .none)
            response(.keep)
        },
        Transcript("content that is here already needs no reset", .post, ends: .whole) {
            routing
            on(.unjudged, .connect(.first))
            on(.connected(clientSent: .whole), .sendHead(heldBytes: 0, .inOrder))
            on(.headSent, .stream)
            on(.received(100, isLast: true), takes: .send)
            on(.contentRead(isLast: true), .sendContent(.last))
            on(.contentSent, .awaitResponse(.clear, .keep))
            response(.keep)
        },
        Transcript("a slow origin stops the client", .post, ends: .whole) {
            streaming()
            on(.received(60), takes: .send)
            on(.contentRead(isLast: false), .sendContent(.more))
            on(.originQueued)
            on(.contentReady, .none)
            on(.contentTimedOut, .awaitContent)
            on(.clientBroke, closesClient: true)
            on(.originDrained, .readContent)
            on(.received(40, isLast: true), takes: .send)
            on(.contentRead(isLast: true), .sendContent(.last))
            on(.originQueued)
            on(.contentSent, .awaitResponse(.queued, .keep))
            on(.clientBroke, closesClient: false)
            on(.originDrained, .awaitResponse(.clear, .keep))
            response(.keep)
        },
        Transcript(
            "a slow client is answered, and the origin sees a reset",
            .post,
            ends: .cutShort(.anything)
        ) {
            streaming()
            on(.received(60), takes: .send)
            on(.contentRead(isLast: false), .sendContent(.more))
            on(.contentTimedOut, .answer(.contentTimeout, .reset, .lingers))
        },
        Transcript("a client that goes leaves a reset", .post, .enforcing, ends: .cutShort(.pass)) {
            judging
            on(.judged(.pass), .admit)
            opened()
            on(.received(60), takes: .send)
            on(.contentRead(isLast: false), .sendContent(.more))
            on(.clientClosed, .end(.reset))
            on(.contentReady, .none)
            on(.originDrained, .none)
        },
        Transcript(
            "broken chunks are answered, and the origin sees a reset",
            .chunked,
            ends: .cutShort(.anything)
        ) {
            streaming()
            on(.received(60), takes: .send)
            on(
                .contentMalformed(.chunkSizeSyntax),
                .answer(.malformed(.chunkSizeSyntax), .reset, .lingers)
            )
        },
        Transcript(
            "too much streamed content is refused",
            .chunked,
            .limited,
            ends: .cutShort(.pass)
        ) {
            digested
            on(.received(150), takes: .sendHashed)
            on(.contentRead(isLast: false), .sendContent(.more))
            on(.received(1), takes: .stop(.answer(.refused(.contentTooLarge), .reset, .lingers)))
        },
        Transcript(
            "too much streamed content goes on where it is observed",
            .chunked,
            .limited,
            ends: .whole
        ) {
            judging
            on(.judged(.pass, .observed), .admit)
            opened()
            on(.received(151), takesAnew: .send)
            on(.received(1), takes: .send)
            on(.contentRead(isLast: true), .sendContent(.last))
            on(.contentSent, .awaitResponse(.clear, .keep))
            response(.keep)
        },
        Transcript(
            "too much content of a refused request changes nothing that the origin was told",
            .chunked,
            .limited,
            ends: .whole
        ) {
            judging
            on(.judged(.refused, .observed), .admit)
            opened()
            on(.received(151), takes: .send)
            on(.contentRead(isLast: true), .sendContent(.last))
            on(.contentSent, .awaitResponse(.clear, .keep))
            response(.keep)
        },
        Transcript("the last bytes wait for the digest", .post, .limited, ends: .whole) {
            digested
            on(.received(60), takes: .sendHashed)
            on(.contentRead(isLast: false), .sendContent(.more))
            on(.received(40, isLast: true), takes: .judgeEnd)
            on(.endJudged(nil), takes: .send)
            on(.contentRead(isLast: true), .sendContent(.last))
            on(.contentSent, .awaitResponse(.clear, .keep))
            response(.keep)
        },
        Transcript("the end of chunks waits for the digest", .chunked, .limited, ends: .whole) {
            digested
            on(.received(100), takes: .sendHashed)
            on(.contentRead(isLast: true), .judgeEnd)
            on(.endJudged(nil), takes: .send)
            on(.contentRead(isLast: true), .sendContent(.last))
            on(.contentSent, .awaitResponse(.clear, .keep))
            response(.keep)
        },
        Transcript(
            "another digest is refused, and the origin sees a reset",
            .post,
            .limited,
            ends: .cutShort(.pass)
        ) {
            digested
            on(.received(100, isLast: true), takes: .judgeEnd)
            on(
                .endJudged(.refuse(.digestMismatch)),
                takes: .stop(.answer(.refused(.digestMismatch), .reset, .lingers))
            )
            on(.contentRead(isLast: true), .none)
        },
        Transcript("another digest goes on where it is observed", .post, .limited, ends: .whole) {
            judging
            on(.judged(.digested, .observed), .admit)
            opened()
            on(.received(100, isLast: true), takes: .judgeEnd)
            on(.endJudged(.refuse(.digestMismatch)), takesAnew: .send)
            on(.contentRead(isLast: true), .sendContent(.last))
            on(.contentSent, .awaitResponse(.clear, .keep))
            response(.keep)
        },
        Transcript(
            "another digest cuts off a response that has begun",
            .post,
            .limited,
            ends: .cutShort(.pass)
        ) {
            digested
            on(.responseBegan(.final(.keeps)), .relay(.early, .keep))
            on(.received(100, isLast: true), takes: .judgeEnd)
            on(
                .endJudged(.refuse(.digestMismatch)),
                takes: .stop(.cutOff(.refused(.digestMismatch), .reset))
            )
        },
        Transcript(
            "a key that is revoked meanwhile ends the content, and the origin sees a reset",
            .post,
            .limited,
            ends: .cutShort(.pass)
        ) {
            judging
            on(.judged(.keyed), .admit)
            opened()
            on(.received(60), takes: .send)
            on(.contentRead(isLast: false), .sendContent(.more))
            on(.received(40, isLast: true), takes: .judgeEnd)
            on(
                .endJudged(.refuse(.keyRevoked)),
                takes: .stop(.answer(.refused(.keyRevoked), .reset, .lingers))
            )
            on(.contentRead(isLast: true), .none)
        },
        Transcript(
            "the end of what a key has signed is judged once",
            .chunked,
            .limited,
            ends: .whole
        ) {
            judging
            on(.judged(.keyed), .admit)
            opened()
            on(.received(100), takes: .send)
            on(.contentRead(isLast: true), .judgeEnd)
            on(.endJudged(nil), takes: .send)
            on(.contentRead(isLast: true), .sendContent(.last))
            on(.contentSent, .awaitResponse(.clear, .keep))
            response(.keep)
        },
    ]
}
