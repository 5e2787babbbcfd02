import HTTPWire
import KeyStore
import Rules
import Services
import Verification

@testable import Proxy

// The verdict, and what waits for it.
extension Transcript {
    static let verdicts: [Transcript] = [
        Transcript("a pass goes to the origin", .get, .enforcing, ends: .whole) {
            judging
            on(.judged(.pass), .admit)
            given()
            response(.drop)
        },
        Transcript("a refusal that is enforced is answered", .get, .enforcing, ends: .nothing) {
            judging
            on(.judged(.refused), .answer(.refused(.assertionMissing), .none, .goesOn))
        },
        Transcript(
            "a refusal by the head keeps the content unread",
            .post,
            .enforcing,
            ends: .nothing
        ) {
            judging
            on(.judged(.refused), .answer(.refused(.assertionMissing), .none, .skips))
        },
        Transcript("a refusal that is observed goes to the origin", .get, .observing, ends: .whole)
        {
            judging
            on(.judged(.refused, .observed), .admit)
            given()
            response(.drop)
        },
        Transcript("a request waits for its counter", .get, .enforcing, ends: .whole) {
            judging
            on(.judged(.unstored), .awaitCommit(.sample))
            on(.contentReady, .none)
            on(.committed(.admitted), .admit)
            given()
            response(.drop)
        },
        Transcript("nobody who is observed waits for the disk", .get, .enforcing, ends: .whole) {
            judging
            on(.judged(.unstored, .observed), .admit)
            given()
            response(.drop)
        },
        Transcript("a store that decides late is waited for by all", .get, .enforcing, ends: .whole)
        {
            judging
            on(.judged(.undecided, .observed), .awaitCommit(.sample))
            on(.committed(.refused(.replayed)), .admit)
            given()
            response(.drop)
        },
        Transcript("a store that decides late refuses", .get, .enforcing, ends: .nothing) {
            judging
            on(.judged(.undecided), .awaitCommit(.sample))
            on(
                .committed(.refused(.replayed)),
                .answer(.refused(.counterReplayed), .none, .goesOn)
            )
        },
        Transcript(
            "a key that the store is asked for is judged anew",
            .get,
            .enforcing,
            ends: .whole
        ) {
            routing
            on(.judged(.sought), .awaitCommit(.sample))
            on(.committed(.admitted), .judgeHead)
            on(.judged(.undecided), .awaitCommit(.sample))
            on(.committed(.admitted), .admit)
            given()
            response(.drop)
        },
        Transcript(
            "a store that can't be asked for a key refuses",
            .get,
            .enforcing,
            ends: .nothing
        ) {
            routing
            on(.judged(.sought, .observed), .awaitCommit(.sample))
            on(.commitTimedOut, .judgeHead)
            on(.judged(.unavailable), .answer(.refused(.storeUnavailable), .none, .goesOn))
        },
        Transcript(
            "held content is judged anew where its key is asked for",
            .post,
            .holding,
            ends: .whole
        ) {
            holding()
            on(.received(100, isLast: true), takes: .hold)
            on(.contentRead(isLast: true), .judgeContent)
            on(.judged(.sought), .awaitCommit(.sample))
            on(.committed(.unassured), .judgeContent)
            on(.judged(.pass), .admit)
            on(.connected(inMemory: 100), .sendHead(heldBytes: 100, .inOrder))
            on(.headSent, .awaitResponse(.clear, .drop))
            response(.keep)
        },
        Transcript("a store that fails late refuses", .get, .forwarding, ends: .nothing) {
            judging
            on(.judged(.undecided), .awaitCommit(.sample))
            on(.committed(.unavailable), .answer(.refused(.storeUnavailable), .none, .goesOn))
        },
        Transcript("a counter that can't be stored refuses", .get, .enforcing, ends: .nothing) {
            judging
            on(.judged(.unstored), .awaitCommit(.sample))
            on(.committed(.unassured), .answer(.refused(.storeUnavailable), .none, .goesOn))
        },
        Transcript(
            "a counter that can't be stored skips content",
            .post,
            .enforcing,
            ends: .nothing
        ) {
            judging
            on(.judged(.unstored), .awaitCommit(.sample))
            on(.committed(.unassured), .answer(.refused(.storeUnavailable), .none, .skips))
        },
        Transcript("a rule that forwards on errors forwards", .get, .forwarding, ends: .whole) {
            judging
            on(.judged(.unstored), .awaitCommit(.sample))
            on(.committed(.unassured), .admit)
            given()
            response(.drop)
        },
        Transcript("a disk that takes too long refuses", .get, .enforcing, ends: .nothing) {
            judging
            on(.judged(.unstored), .awaitCommit(.sample))
            on(.commitTimedOut, .answer(.refused(.storeUnavailable), .none, .goesOn))
        },
        Transcript(
            "a disk that takes too long is forwarded past by on_error",
            .get,
            .forwarding,
            ends: .whole
        ) {
            judging
            on(.judged(.unstored), .awaitCommit(.sample))
            on(.commitTimedOut, .admit)
            given()
            response(.drop)
        },
        Transcript(
            "a store that takes too long to decide refuses, whatever on_error says",
            .get,
            .forwarding,
            ends: .nothing
        ) {
            judging
            on(.judged(.undecided), .awaitCommit(.sample))
            on(.commitTimedOut, .answer(.refused(.storeUnavailable), .none, .goesOn))
        },
        Transcript("a wait for a client that went ends late", .get, .enforcing, ends: .nothing) {
            judging
            on(.judged(.unstored), .awaitCommit(.sample))
            on(.clientClosed, .end(.none))
            on(.commitTimedOut, .none)
        },
        Transcript("a commit for a client that went is late", .get, .enforcing, ends: .nothing) {
            judging
            on(.judged(.unstored), .awaitCommit(.sample))
            on(.clientClosed, .end(.none))
            on(.committed(.admitted), .none)
        },
        Transcript("content that came whole is judged with its head", .post, .holding, ends: .whole)
        {
            routing
            on(.took(100))
            on(.judged(.pass), .admit)
            given()
            response(.drop)
        },
        Transcript("more content that came whole is held at once", .post, .holding, ends: .whole) {
            routing
            on(.took(1500))
            on(.judged(.pass), .admit)
            on(.connected(inMemory: 1500), .sendHead(heldBytes: 1500, .inOrder))
            on(.headSent, .awaitResponse(.clear, .drop))
            response(.keep)
        },
        Transcript("content that came whole and is off goes with its head", .post, ends: .whole) {
            routing
            on(.took(100))
            on(.unjudged, .connect(.first))
            given()
            response(.drop)
        },
        Transcript("content above the rule's limit is not taken", .post, .limited, ends: .nothing) {
            routing
            on(.took(151))
            on(.judged(.refused), .answer(.refused(.assertionMissing), .none, .skips))
        },
    ]

    static let holdings: [Transcript] = [
        Transcript("content is held, judged and given", .post, .holding, ends: .whole) {
            held(100)
            on(.connected(inMemory: 100), .sendHead(heldBytes: 100, .inOrder))
            on(.headSent, .awaitResponse(.clear, .drop))
            response(.keep)
        },
        Transcript("chunks without content are held and given", .chunked, .holding, ends: .whole) {
            holding()
            on(.contentRead(isLast: true), .judgeContent)
            on(.judged(.pass), .admit)
            given()
            response(.drop)
        },
        Transcript("content in a file is given piece by piece", .post, .holding, ends: .whole) {
            held(100)
            on(.connected(inMemory: 40), .sendHead(heldBytes: 40, .byReset))
            on(.headSent, .sendHeld(from: 40))
            on(.heldSent(30), .sendHeld(from: 70))
            on(.originQueued)
            on(.heldSent(20), .none)
            on(.clientBroke, closesClient: false)
            on(.originDrained, .sendHeld(from: 90))
            on(.heldSent(10), .awaitResponse(.clear, .drop))
            on(.clientBroke, closesClient: true)
            response(.keep)
        },
        Transcript("held content is refused by its verdict", .post, .holding, ends: .nothing) {
            holding()
            on(.received(100, isLast: true), takes: .hold)
            on(.contentRead(isLast: true), .judgeContent)
            on(.judged(.refused), .answer(.refused(.assertionMissing), .none, .goesOn))
        },
        Transcript("held content waits for its counter", .post, .holding, ends: .whole) {
            holding()
            on(.received(100, isLast: true), takes: .hold)
            on(.contentRead(isLast: true), .judgeContent)
            on(.judged(.unstored), .awaitCommit(.sample))
            on(.committed(.admitted), .admit)
            on(.connected(inMemory: 100), .sendHead(heldBytes: 100, .inOrder))
            on(.headSent, .awaitResponse(.clear, .drop))
            response(.keep)
        },
        Transcript("too much content to hold is refused", .chunked, .holding, ends: .nothing) {
            holding()
            on(.received(2000), takes: .hold)
            on(.received(1), takes: .stop(.answer(.refused(.contentTooLarge), .none, .lingers)))
            on(.contentRead(isLast: false), .none)
        },
        Transcript("content that there is no room for is refused", .post, .holding, ends: .nothing)
        {
            holding()
            on(.received(10), takes: .hold)
            on(.holdFailed(.heldFull), takes: .stop(.answer(.refused(.heldFull), .none, .lingers)))
        },
        Transcript("held content that does not come is answered", .post, .holding, ends: .nothing) {
            holding()
            on(.contentTimedOut, .answer(.contentTimeout, .none, .lingers))
        },
        Transcript("held content that breaks off is answered", .chunked, .holding, ends: .nothing) {
            holding()
            on(
                .contentMalformed(.chunkDataEnd),
                .answer(.malformed(.chunkDataEnd), .none, .lingers)
            )
        },
        Transcript("a client that goes while its content is held", .post, .holding, ends: .nothing)
        {
            holding()
            on(.clientBroke, closesClient: true)
            on(.clientClosed, .end(.none))
            on(.contentRead(isLast: true), .none)
        },
        Transcript(
            "too much content goes on where it is observed",
            .chunked,
            .holding,
            ends: .whole
        ) {
            holding(.observed)
            on(.received(2000), takes: .hold)
            on(.received(1), takesAnew: .append)
            on(.received(2), takes: .append)
            on(.contentRead(isLast: false), .release)
            on(.connected(inMemory: 1000), .sendHead(heldBytes: 0, .byReset))
            on(.headSent, .sendHeld(from: 0))
            on(.heldSent(2003), .streamOn)
            on(.contentReady, .readContent)
            on(.received(50), takes: .send)
            on(.contentRead(isLast: true), .sendContent(.last))
            on(.contentSent, .awaitResponse(.clear, .keep))
            response(.keep)
        },
        Transcript(
            "content without room goes on where it is observed",
            .post,
            .holding,
            ends: .whole
        ) {
            holding(.observed)
            on(.received(100, isLast: true), takes: .hold)
            on(.holdFailed(.heldFull), takesAnew: .append)
            on(.contentRead(isLast: true), .release)
            on(.clientBroke, closesClient: true)
            on(.connected(inMemory: 60), .sendHead(heldBytes: 60, .byReset))
            on(.headSent, .sendHeld(from: 60))
            on(.clientBroke, closesClient: true)
            on(.heldSent(40), .endHeld)
            on(.contentSent, .awaitResponse(.clear, .keep))
            on(.clientBroke, closesClient: true)
            response(.keep)
        },
        Transcript(
            "held content that can't be read is answered",
            .post,
            .holding,
            ends: .cutShort(.pass)
        ) {
            held(100)
            on(.connected(inMemory: 40), .sendHead(heldBytes: 40, .byReset))
            on(.headSent, .sendHeld(from: 40))
            on(.heldUnreadable, .answer(.declined(.spillFailed), .reset, .lingers))
        },
        Transcript("no server takes content that was held", .post, .holding, ends: .nothing) {
            held(100)
            on(.clientBroke, closesClient: false)
            on(
                .connectFailed(.originUnreachable),
                .answer(.unreached(.originUnreachable), .none, .goesOn)
            )
        },
        Transcript("no server takes content that was released", .post, .holding, ends: .nothing) {
            holding(.observed)
            on(.received(100, isLast: true), takes: .hold)
            on(.holdFailed(.spillFailed), takesAnew: .append)
            on(.contentRead(isLast: true), .release)
            on(
                .connectFailed(.originUnreachable),
                .answer(.unreached(.originUnreachable), .none, .lingers)
            )
        },
    ]
}
