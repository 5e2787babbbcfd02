import HTTPWire
import KeyStore
import Rules
import Verification

@testable import Proxy

// What Apple says of the device, and what waits for it.
extension Transcript {
    static let devices: [Transcript] = [
        Transcript("a device whose bits are clear goes on", .get, .checking, ends: .whole) {
            asking
            on(.contentReady, .none)
            on(.contentTimedOut, .none)
            on(.deviceAnswered(.bits(.neverSet)), .admit)
            given()
            response(.drop)
        },
        Transcript("a device whose bits are refused is answered", .get, .checking, ends: .nothing) {
            asking
            on(.deviceAnswered(.bits(.flagged)), .answer(.refused(.deviceFlagged), .none, .goesOn))
        },
        Transcript("a refusal by the head asks for no device", .get, .checking, ends: .nothing) {
            judging
            on(.judged(.refused), .answer(.refused(.assertionMissing), .none, .goesOn))
        },
        Transcript("an observed refusal asks for no device either", .get, .checking, ends: .whole) {
            judging
            on(.judged(.refused, .observed), .admit)
            given()
            response(.drop)
        },
        Transcript("the device comes behind the commit", .get, .checking, ends: .whole) {
            judging
            on(.judged(.unstored), .awaitCommit(.sample))
            on(.committed(.admitted), .ask(.device))
            on(.deviceAnswered(.bits(.neverSet)), .admit)
            given()
            response(.drop)
        },
        Transcript("a commit that refuses asks for no device", .get, .checking, ends: .nothing) {
            judging
            on(.judged(.undecided), .awaitCommit(.sample))
            on(
                .committed(.refused(.replayed)),
                .answer(.refused(.counterReplayed), .none, .goesOn)
            )
        },
        Transcript("a device that is only observed goes on, refused", .get, .checking, ends: .whole)
        {
            judging
            on(.judged(.pass, .observed), .ask(.device))
            on(.deviceAnswered(.bits(.flagged)), .admit)
            given()
            response(.drop)
        },
        Transcript("a request without a device token is refused", .get, .checking, ends: .nothing) {
            asking
            on(.deviceAnswered(.missing), .answer(.refused(.deviceTokenMissing), .none, .goesOn))
        },
        Transcript("what is no device token is refused", .get, .checkingKindly, ends: .nothing) {
            asking
            on(
                .deviceAnswered(.malformed),
                .answer(.refused(.deviceTokenMalformed), .none, .goesOn)
            )
        },
        Transcript("a device token that came before is refused", .get, .checking, ends: .nothing) {
            asking
            on(.deviceAnswered(.used), .answer(.refused(.deviceTokenUsed), .none, .goesOn))
        },
        Transcript("a key's fifth token at once is refused", .get, .checkingKindly, ends: .nothing)
        {
            asking
            on(
                .deviceAnswered(.crowded),
                .answer(.refused(.deviceThrottled), .none, .goesOn)
            )
        },
        Transcript(
            "a token that nobody could remember is refused, whatever on_error says",
            .get,
            .checkingKindly,
            ends: .nothing
        ) {
            asking
            on(
                .deviceAnswered(.full),
                .answer(.refused(.deviceCheckUnavailable), .none, .goesOn)
            )
        },
        Transcript("Apple's silence refuses", .get, .checking, ends: .nothing) {
            asking
            on(
                .deviceAnswered(.unavailable),
                .answer(.refused(.deviceCheckUnavailable), .none, .goesOn)
            )
        },
        Transcript(
            "Apple's silence is forwarded past by on_error",
            .get,
            .checkingKindly,
            ends: .whole
        ) {
            asking
            on(.deviceAnswered(.unavailable), .admit)
            given()
            response(.drop)
        },
        Transcript(
            "the rule's own on_error is for the store, not for Apple",
            .get,
            .checkingAndForwarding,
            ends: .nothing
        ) {
            judging
            on(.judged(.unstored), .awaitCommit(.sample))
            on(.committed(.unassured), .ask(.device))
            on(
                .deviceAnswered(.unavailable),
                .answer(.refused(.deviceCheckUnavailable), .none, .goesOn)
            )
        },
        Transcript(
            "a failing store does not excuse the device",
            .get,
            .checkingAndForwarding,
            ends: .nothing
        ) {
            judging
            on(.judged(.unstored), .awaitCommit(.sample))
            on(.commitTimedOut, .ask(.device))
            on(.deviceAnswered(.bits(.flagged)), .answer(.refused(.deviceFlagged), .none, .goesOn))
        },
        Transcript(
            "content that was not read stays so until the device is known",
            .post,
            .checking,
            ends: .whole
        ) {
            asking
            on(.contentReady, .none)
            on(.deviceAnswered(.bits(.neverSet)), .admit)
            opened()
            on(.received(100, isLast: true), takes: .send)
            on(.contentRead(isLast: true), .sendContent(.last))
            on(.contentSent, .awaitResponse(.clear, .keep))
            response(.keep)
        },
        Transcript(
            "content that was not read is skipped for a refused device",
            .post,
            .checking,
            ends: .nothing
        ) {
            asking
            on(.deviceAnswered(.bits(.flagged)), .answer(.refused(.deviceFlagged), .none, .skips))
        },
        Transcript(
            "held content stays held until the device is known",
            .post,
            .checkingHeld,
            ends: .whole
        ) {
            holding()
            on(.received(100, isLast: true), takes: .hold)
            on(.contentRead(isLast: true), .judgeContent)
            on(.judged(.pass), .ask(.device))
            on(.clientBroke, closesClient: true)
            on(.deviceAnswered(.bits(.neverSet)), .admit)
            on(.connected(inMemory: 100), .sendHead(heldBytes: 100, .inOrder))
            on(.headSent, .awaitResponse(.clear, .drop))
            response(.keep)
        },
        Transcript("an answer for a client that went is late", .get, .checking, ends: .nothing) {
            asking
            on(.clientClosed, .end(.none))
            on(.deviceAnswered(.bits(.neverSet)), .none)
        },
    ]

    /// Everything else holds.
    private static let asking: [Row] =
        routing + [
            on(.judged(.pass), .ask(.device))
        ]
}

extension DeviceBits {
    fileprivate static let flagged = DeviceBits(bit0: true, bit1: false)
}
