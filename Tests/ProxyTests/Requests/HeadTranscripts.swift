import HTTPWire
import KeyStore
import Rules
import Verification

@testable import Proxy

// From the head to a rule or a service, and answers on the way.
extension Transcript {
    static let heads: [Transcript] = [
        Transcript("a head that can't be read is the connection's last", .malformed, ends: .nothing)
        {
            on(
                .headMalformed(.fieldNameSyntax),
                .answer(.malformed(.fieldNameSyntax), .none, .lingers)
            )
        },
        Transcript("an address over its limit is answered", .get, ends: .nothing) {
            on(.headRead, .countRequest)
            on(.addressThrottled, .answer(.declined(.addressThrottled), .none, .goesOn))
        },
        Transcript("an address over its limit loses content that is here", .post, ends: .nothing) {
            on(.headRead, .countRequest)
            on(.addressThrottled, .skipContent)
            on(
                .contentSkipped(isWhole: true),
                .answer(.declined(.addressThrottled), .none, .goesOn)
            )
        },
        Transcript("content that is not here ends the connection", .post, ends: .nothing) {
            on(.headRead, .countRequest)
            on(.addressThrottled, .skipContent)
            on(
                .contentSkipped(isWhole: false),
                .answer(.declined(.addressThrottled), .none, .lingers)
            )
        },
        Transcript("a loop is answered", .get, ends: .nothing) {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.located(.loop), .answer(.loopDetected, .none, .goesOn))
        },
        Transcript("an OPTIONS request that may go no further is answered", .post, ends: .nothing) {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.located(.lastHop), .skipContent)
            on(.contentSkipped(isWhole: true), .answer(.lastHop, .none, .goesOn))
        },
        Transcript(
            "a path that can be read in two ways is refused",
            .get,
            .enforcing,
            ends: .nothing
        ) {
            routing
            on(.unroutable(.pathAmbiguous), .answer(.malformed(.pathAmbiguous), .none, .lingers))
        },
        Transcript("a rule that denies answers without content", .get, .denying, ends: .nothing) {
            routing
            on(.routed(whole: nil), .answer(.refused(.noRule), .none, .goesOn))
        },
        Transcript("a rule that denies skips content", .post, .denying, ends: .nothing) {
            routing
            on(.routed(whole: nil), .skipContent)
            on(.contentSkipped(isWhole: false), .answer(.refused(.noRule), .none, .lingers))
        },
        Transcript(
            "a rule that denies takes content that came whole",
            .post,
            .denying,
            ends: .nothing
        ) {
            routing
            on(.routed(whole: 100), .takeContent(.behindHead(100)))
            on(.contentTaken(100), .answer(.refused(.noRule), .none, .goesOn))
        },
        Transcript("a client that goes at once leaves nothing", .get, ends: .nothing) {
            on(.clientClosed, .end(.none))
        },
    ]

    static let services: [Transcript] = [
        Transcript("a service without content is asked at once", .get, ends: .nothing) {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.located(.service(.free)), .serve)
            on(.served, .answer(.service, .none, .goesOn))
        },
        Transcript(
            "a charged service without content is asked behind its count",
            .get,
            ends: .nothing
        ) {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.located(.service(.charged)), .countCall)
            on(.callCounted, .serve)
            on(.served, .answer(.service, .none, .goesOn))
        },
        Transcript(
            "a service that asks for a proof is asked once it is given",
            .get,
            ends: .nothing
        ) {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.located(.service(.proven)), .countCall)
            on(.callCounted, .judgeHead)
            on(.ruled(.pass), .serve)
            on(.served, .answer(.service, .none, .goesOn))
        },
        Transcript("a service is not asked without its proof", .get, ends: .nothing) {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.located(.service(.provenFree)), .judgeHead)
            on(.ruled(.refused), .answer(.refused(.assertionMissing), .none, .goesOn))
        },
        Transcript("a service is asked when the proof is stored", .get, ends: .nothing) {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.located(.service(.provenFree)), .judgeHead)
            on(.ruled(.unstored), .awaitCommit(.sample))
            on(.committed(.admitted), .serve)
            on(.served, .answer(.service, .none, .goesOn))
        },
        Transcript("a path of the gateway's without a service is answered", .post, ends: .nothing) {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.serviceRefused, .skipContent)
            on(.contentSkipped(isWhole: true), .answer(.service, .none, .goesOn))
        },
        Transcript("a service's content is collected", .post, ends: .nothing) {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.located(.service(.charged)), .countCall)
            on(.callCounted, .collect)
            on(.received(60), takes: .collect)
            on(.contentRead(isLast: false), .none)
            on(.contentReady, .readContent)
            on(.received(40, isLast: true), takes: .collect)
            on(.contentRead(isLast: true), .serve)
            on(.contentTimedOut, .none)
            on(.served, .answer(.service, .none, .goesOn))
        },
        Transcript("an address over its limit of calls is answered", .post, ends: .nothing) {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.located(.service(.charged)), .countCall)
            on(.addressThrottled, .skipContent)
            on(
                .contentSkipped(isWhole: false),
                .answer(.declined(.addressThrottled), .none, .lingers)
            )
        },
        Transcript("an address over its limit of calls needs no content", .get, ends: .nothing) {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.located(.service(.charged)), .countCall)
            on(.addressThrottled, .answer(.declined(.addressThrottled), .none, .goesOn))
        },
        Transcript(
            "content that is too long for a service is refused unread",
            .post,
            ends: .nothing
        ) {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.located(.service(.small)), .skipContent)
            on(.contentSkipped(isWhole: true), .answer(.declined(.contentTooLarge), .none, .goesOn))
        },
        Transcript("chunks that grow too long for a service are refused", .chunked, ends: .nothing)
        {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.located(.service(.small)), .collect)
            on(
                .received(51),
                takes: .stop(.answer(.declined(.contentTooLarge), .none, .lingers))
            )
            on(.contentRead(isLast: true), .none)
        },
        Transcript("content for a service that breaks off is answered", .chunked, ends: .nothing) {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.located(.service(.free)), .collect)
            on(
                .contentMalformed(.chunkSizeSyntax),
                .answer(.malformed(.chunkSizeSyntax), .none, .lingers)
            )
        },
        Transcript("content for a service that does not come is answered", .post, ends: .nothing) {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.located(.service(.free)), .collect)
            on(.contentTimedOut, .answer(.contentTimeout, .none, .lingers))
        },
        Transcript("a service's answer for a client that went is late", .get, ends: .nothing) {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.located(.service(.free)), .serve)
            on(.clientBroke, closesClient: true)
            on(.clientClosed, .end(.none))
            on(.served, .none)
            on(.storingTimedOut, .none)
        },
        Transcript("a service does not wait for ever for the store", .post, ends: .nothing) {
            on(.headRead, .countRequest)
            on(.requestCounted, .locate)
            on(.located(.service(.free)), .collect)
            on(.received(100, isLast: true), takes: .collect)
            on(.contentRead(isLast: true), .serve)
            on(.storingTimedOut, .answer(.declined(.storeUnavailable), .none, .goesOn))
            on(.served, .none)
        },
    ]
}
