import HTTPWire
import Rules
import Services
import Verification

@testable import Proxy

// Servers that fail, and second attempts.
extension Transcript {
    static let connects: [Transcript] = [
        Transcript("no server takes a connection", .get, ends: .nothing) {
            routing
            on(.unjudged, .connect(.first))
            on(
                .connectFailed(.originUnreachable),
                .answer(.unreached(.originUnreachable), .none, .goesOn)
            )
        },
        Transcript("no server answers a connect in time", .post, ends: .nothing) {
            routing
            on(.unjudged, .connect(.first))
            on(.connectFailed(.originTimeout), .answer(.unreached(.originTimeout), .none, .skips))
        },
        Transcript("no server is up", .get, ends: .nothing) {
            routing
            on(.unjudged, .connect(.first))
            on(.connectFailed(.originDown), .answer(.unreached(.originDown), .none, .goesOn))
        },
        Transcript("no server has a place for a connection", .get, ends: .nothing) {
            routing
            on(.unjudged, .connect(.first))
            on(
                .connectFailed(.originQueueFull),
                .answer(.unreached(.originQueueFull), .none, .goesOn)
            )
        },
        Transcript("no server has a place in time", .get, ends: .nothing) {
            routing
            on(.unjudged, .connect(.first))
            on(
                .connectFailed(.originQueueTimeout),
                .answer(.unreached(.originQueueTimeout), .none, .goesOn)
            )
        },
        Transcript("no descriptor is left", .get, ends: .nothing) {
            routing
            on(.unjudged, .connect(.first))
            on(
                .connectFailed(.outOfDescriptors),
                .answer(.unreached(.outOfDescriptors), .none, .goesOn)
            )
        },
        Transcript("a client that goes during the connect", .get, ends: .nothing) {
            routing
            on(.unjudged, .connect(.first))
            on(.clientBroke, closesClient: true)
            on(.clientClosed, .end(.close))
        },
    ]

    static let retries: [Transcript] = [
        Transcript("a pooled connection that breaks is tried once more", .get, ends: .whole) {
            sent()
            on(.originBroke(.nothing), .retry(.broken, .close, .again(1)))
            given(.fresh)
            response(.drop)
        },
        Transcript("there is no third attempt", .get, ends: .whole) {
            sent()
            on(.originBroke(.nothing), .retry(.broken, .close, .again(1)))
            given(.reused)
            on(.originBroke(.nothing), .answer(.failed(.originClosed), .close, .goesOn))
        },
        Transcript("a fresh connection that breaks is retried so often", .get, ends: .whole) {
            tried(.fresh, retriesMax: 2)
            on(.originBroke(.nothing), .retry(.broken, .close, .again(1)))
            again(.fresh, retriesMax: 2)
            on(.originBroke(.nothing), .retry(.broken, .close, .again(2)))
            again(.fresh, retriesMax: 2)
            on(.originBroke(.nothing), .answer(.failed(.originClosed), .close, .goesOn))
        },
        Transcript("a response that does not begin in time is retried", .get, ends: .whole) {
            tried(.reused, retriesMax: 1)
            on(.originTimedOut(client: .clear), .retry(.timedOut, .close, .again(1)))
            again(.fresh, retriesMax: 1)
            on(.originTimedOut(client: .clear), .answer(.failed(.originTimeout), .close, .goesOn))
        },
        Transcript("an interim response forbids another attempt in time", .get, ends: .whole) {
            tried(.fresh, retriesMax: 1)
            on(
                .originTimedOut(client: .clear, .something),
                .answer(.failed(.originTimeout), .close, .goesOn)
            )
        },
        Transcript("without a budget there is no retry", .get, ends: .whole) {
            tried(.fresh, retriesMax: 2)
            on(.originBroke(.nothing, .spent), .answer(.failed(.originClosed), .close, .goesOn))
        },
        Transcript("an idle connection that breaks needs no budget", .get, ends: .whole) {
            sent()
            on(.originBroke(.nothing, .spent), .retry(.broken, .close, .again(1)))
            given(.fresh)
            response(.drop)
        },
        Transcript("retries change nothing for other methods", RequestFacts(.post), ends: .whole) {
            tried(.fresh, retriesMax: 2)
            on(.originBroke(.nothing), .answer(.failed(.originClosed), .close, .goesOn))
        },
        Transcript(
            "retries change nothing for what an assertion stands for",
            RequestFacts(.put),
            .enforcing,
            ends: .whole
        ) {
            judging
            on(.judged(.pass), .admit)
            again(.fresh, retriesMax: 2)
            on(.originBroke(.nothing), .answer(.failed(.originClosed), .close, .goesOn))
        },
        Transcript(
            "what a server refused is sent once more, whatever its method",
            RequestFacts(.post),
            .enforcing,
            ends: .whole
        ) {
            judging
            on(.judged(.pass), .admit)
            again(.fresh, retriesMax: 0)
            on(.originRefused(.spent), .retry(.unsent, .close, .again(1)))
            again(.fresh, retriesMax: 0)
            on(.originRefused(), .answer(.failed(.originRefused), .close, .goesOn))
        },
        Transcript("held content is kept for a server that refuses", .post, .holding, ends: .whole)
        {
            held(100)
            on(.connected(inMemory: 100, mayRefuse: true), .sendHead(heldBytes: 100, .inOrder))
            on(.headSent, .awaitResponse(.clear, .keep))
            on(.originRefused(.spent), .retry(.unsent, .close, .again(1)))
            on(
                .connected(.fresh, inMemory: 100, mayRefuse: true),
                .sendHead(heldBytes: 100, .inOrder)
            )
            on(.headSent, .awaitResponse(.clear, .drop))
            response(.keep)
        },
        Transcript(
            "that content is kept repeats nothing that broke",
            .post,
            .holding,
            ends: .whole
        ) {
            held(100)
            on(.connected(inMemory: 100, mayRefuse: true), .sendHead(heldBytes: 100, .inOrder))
            on(.headSent, .awaitResponse(.clear, .keep))
            on(.originBroke(.nothing), .answer(.failed(.originClosed), .close, .goesOn))
        },
        Transcript("what a server refused again takes a retry", RequestFacts(.post), ends: .whole) {
            tried(.fresh, retriesMax: 2)
            on(.originRefused(), .retry(.unsent, .close, .again(1)))
            again(.fresh, retriesMax: 2)
            on(.originRefused(), .retry(.unsent, .close, .again(2)))
            again(.fresh, retriesMax: 2)
            on(.originRefused(), .answer(.failed(.originRefused), .close, .goesOn))
        },
        Transcript("no server is left for a second attempt", .get, ends: .nothing) {
            sent()
            on(.originBroke(.nothing), .retry(.broken, .close, .again(1)))
            on(
                .connectFailed(.originUnreachable),
                .answer(.unreached(.originUnreachable), .none, .goesOn)
            )
        },
        Transcript("a fresh connection that breaks is an answer", .get, ends: .whole) {
            sent(.fresh)
            on(.originBroke(.nothing), .answer(.failed(.originClosed), .close, .goesOn))
        },
        Transcript("a beginning of a response forbids another attempt", .get, ends: .whole) {
            sent()
            on(.originBroke(.something), .answer(.failed(.originClosed), .close, .goesOn))
        },
        Transcript(
            "a method that changes things is not repeated",
            RequestFacts(.post),
            ends: .whole
        ) {
            sent()
            on(.originBroke(.nothing), .answer(.failed(.originClosed), .close, .goesOn))
        },
        Transcript("any method is repeated if no byte was taken", RequestFacts(.post), ends: .whole)
        {
            sent()
            on(.writeFailed(isUntouched: true), .retry(.unsent, .close, .again(1)))
            given(.fresh)
            response(.drop)
        },
        Transcript(
            "an assertion stands for one execution",
            RequestFacts(.put),
            .enforcing,
            ends: .whole
        ) {
            judging
            on(.judged(.pass), .admit)
            given()
            on(.originBroke(.nothing), .answer(.failed(.originClosed), .close, .goesOn))
        },
        Transcript(
            "a proven method that changes nothing is repeated",
            .get,
            .enforcing,
            ends: .whole
        ) {
            judging
            on(.judged(.pass), .admit)
            given()
            on(.originBroke(.nothing), .retry(.broken, .close, .again(1)))
            given(.fresh)
            response(.drop)
        },
        Transcript("content that was not read is read for the second", .put, ends: .whole) {
            streaming()
            on(.originBroke(.nothing), .retry(.broken, .reset, .again(1)))
            opened(.fresh)
            on(.received(100, isLast: true), takes: .send)
            on(.contentRead(isLast: true), .sendContent(.last))
            on(.contentSent, .awaitResponse(.clear, .keep))
            response(.keep)
        },
        Transcript(
            "a head that was half taken is repeated with its content unread",
            .put,
            ends: .nothing
        ) {
            routing
            on(.unjudged, .connect(.first))
            on(.connected(), .sendHead(heldBytes: 0, .byReset))
            on(.writeFailed(isUntouched: false), .readLastWords)
            on(.lastWordsRead(.nothing), .retry(.broken, .reset, .again(1)))
            on(
                .connectFailed(.originUnreachable),
                .answer(.unreached(.originUnreachable), .none, .skips)
            )
        },
        Transcript("content that is gone can't be repeated", .put, ends: .cutShort(.anything)) {
            streaming()
            on(.received(60), takes: .send)
            on(.contentRead(isLast: false), .sendContent(.more))
            on(.originBroke(.nothing), .answer(.failed(.originClosed), .reset, .lingers))
        },
        Transcript("held content is kept and repeated", .put, .observing, ends: .whole) {
            holding(.observed)
            on(.received(100, isLast: true), takes: .hold)
            on(.contentRead(isLast: true), .judgeContent)
            on(.judged(.refused, .observed), .admit)
            on(.connected(inMemory: 100), .sendHead(heldBytes: 100, .inOrder))
            on(.headSent, .awaitResponse(.clear, .keep))
            on(.originBroke(.nothing), .retry(.broken, .close, .again(1)))
            on(.connected(.fresh, inMemory: 60), .sendHead(heldBytes: 60, .byReset))
            on(.headSent, .sendHeld(from: 60))
            on(.heldSent(40), .awaitResponse(.clear, .drop))
            response(.keep)
        },
        Transcript("held content is repeated from its beginning", .post, .holding, ends: .whole) {
            held(100)
            on(.connected(inMemory: 40), .sendHead(heldBytes: 40, .byReset))
            on(.writeFailed(isUntouched: true), .retry(.unsent, .reset, .again(1)))
            on(.connected(.fresh, inMemory: 100), .sendHead(heldBytes: 100, .inOrder))
            on(.headSent, .awaitResponse(.clear, .drop))
            response(.keep)
        },
    ]

    static let originFailures: [Transcript] = [
        Transcript("an origin that says nothing in time", .get, ends: .whole) {
            sent()
            on(.originTimedOut(client: .clear), .answer(.failed(.originTimeout), .close, .goesOn))
        },
        Transcript("an origin that takes nothing in time", .post, ends: .cutShort(.anything)) {
            streaming()
            on(.received(60), takes: .send)
            on(.contentRead(isLast: false), .sendContent(.more))
            on(.originQueued)
            on(.originTimedOut(client: .clear), .answer(.failed(.originTimeout), .reset, .lingers))
        },
        Transcript("what is no response is answered", .get, ends: .whole) {
            sent()
            on(
                .responseMalformed(.responseMalformed),
                .answer(.failed(.responseMalformed), .close, .goesOn)
            )
        },
        Transcript("too many interim responses are answered", .get, ends: .whole) {
            sent()
            on(
                .responseMalformed(.tooManyInterimResponses),
                .answer(.failed(.tooManyInterimResponses), .close, .goesOn)
            )
        },
        Transcript(
            "what the origin said before it closed is relayed",
            .post,
            ends: .cutShort(.anything)
        ) {
            streaming()
            on(.received(60), takes: .send)
            on(.contentRead(isLast: false), .sendContent(.more))
            on(.writeFailed(isUntouched: false), .readLastWords)
            on(.responseBegan(.final(.keeps)), .relay(.early, .keep))
            on(.responseEnded, .finish(.reset))
            on(.lastWordsRead(.something), .none)
        },
        Transcript("what the origin said goes on to be relayed", .post, ends: .cutShort(.anything))
        {
            streaming()
            on(.received(60), takes: .send)
            on(.contentRead(isLast: false), .sendContent(.more))
            on(.writeFailed(isUntouched: false), .readLastWords)
            on(.received(1), takes: .stop(.none))
            on(.contentRead(isLast: false), .none)
            on(.responseBegan(.final(.keeps)), .relay(.early, .keep))
            on(.lastWordsRead(.something), .none)
            on(.originDrained, .none)
            on(.responseEnded, .finish(.reset))
        },
        Transcript("an origin that closed and said nothing", .post, ends: .cutShort(.anything)) {
            streaming()
            on(.received(60), takes: .send)
            on(.contentRead(isLast: false), .sendContent(.more))
            on(.originQueued)
            on(.writeFailed(isUntouched: false), .readLastWords)
            on(.originDrained, .none)
            on(.lastWordsRead(.nothing), .answer(.failed(.originClosed), .reset, .lingers))
            on(.writeFailed(isUntouched: false), .none)
            on(.originBroke(.nothing), .none)
            on(.originTimedOut(client: .clear), .none)
            on(.responseMalformed(.originClosed), .none)
        },
    ]
}
