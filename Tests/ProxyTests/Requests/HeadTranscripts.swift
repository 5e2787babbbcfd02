import HTTPWire
import KeyStore
import Rules
import Verification

@testable import Proxy

// What admission has found, and answers before a verdict.
extension Transcript {
    static let heads: [Transcript] = [
        Transcript("a head that can't be read is the connection's last", .malformed, ends: .nothing)
        {
            on(.malformed(.fieldNameSyntax), .answer(.malformed(.fieldNameSyntax), .none, .lingers))
        },
        Transcript("an address over its limit is answered", .get, ends: .nothing) {
            on(
                .declined(.declined(.addressThrottled)),
                .answer(.declined(.addressThrottled), .none, .goesOn)
            )
        },
        Transcript("an address over its limit skips its content", .post, ends: .nothing) {
            on(
                .declined(.declined(.addressThrottled)),
                .answer(.declined(.addressThrottled), .none, .skips)
            )
        },
        Transcript("an OPTIONS request that may go no further is answered", .post, ends: .nothing) {
            on(.declined(.lastHop), .answer(.lastHop, .none, .skips))
        },
        Transcript(
            "a path without a meaning is refused",
            .get,
            .enforcing,
            ends: .nothing
        ) {
            routing
            on(.malformed(.pathControl), .answer(.malformed(.pathControl), .none, .lingers))
        },
        Transcript("a rule that denies answers without content", .get, .denying, ends: .nothing) {
            routing
            on(.denied, .answer(.refused(.noRule), .none, .goesOn))
        },
        Transcript("a rule that denies skips content", .post, .denying, ends: .nothing) {
            routing
            on(.denied, .answer(.refused(.noRule), .none, .skips))
        },
        Transcript(
            "a rule that denies takes content that came whole",
            .post,
            .denying,
            ends: .nothing
        ) {
            routing
            on(.took(100))
            on(.denied, .answer(.refused(.noRule), .none, .goesOn))
        },
        Transcript("a client that goes at once leaves nothing", .get, ends: .nothing) {
            on(.clientClosed, .end(.none))
        },
    ]

    static let services: [Transcript] = [
        Transcript("a service without content is asked at once", .get, ends: .nothing) {
            on(.asked(contentMax: 120), .serve)
            on(.served, .answer(.service, .none, .goesOn))
        },
        Transcript(
            "a service that asks for a proof is asked once it is given",
            .get,
            .opening,
            ends: .nothing
        ) {
            on(.askedByRule)
            on(.judged(.pass), .serve)
            on(.served, .answer(.service, .none, .goesOn))
        },
        Transcript("a service is not asked without its proof", .get, .opening, ends: .nothing) {
            on(.askedByRule)
            on(.judged(.refused), .answer(.refused(.assertionMissing), .none, .goesOn))
        },
        Transcript("a service is asked when the proof is stored", .get, .opening, ends: .nothing) {
            on(.askedByRule)
            on(.judged(.unstored), .awaitCommit(.sample))
            on(.committed(.admitted), .serve)
            on(.served, .answer(.service, .none, .goesOn))
        },
        Transcript("a path of the gateway's without a service is answered", .post, ends: .nothing) {
            on(.declined(.service), .answer(.service, .none, .skips))
        },
        Transcript("a service's content is collected", .post, ends: .nothing) {
            on(.asked(contentMax: 120), .collect)
            on(.received(60), takes: .collect)
            on(.contentRead(isLast: false), .none)
            on(.contentReady, .readContent)
            on(.received(40, isLast: true), takes: .collect)
            on(.contentRead(isLast: true), .serve)
            on(.contentTimedOut, .none)
            on(.served, .answer(.service, .none, .goesOn))
        },
        Transcript(
            "content that is too long for a service is refused unread",
            .post,
            ends: .nothing
        ) {
            on(.asked(contentMax: 50), .answer(.declined(.contentTooLarge), .none, .skips))
        },
        Transcript("chunks that grow too long for a service are refused", .chunked, ends: .nothing)
        {
            on(.asked(contentMax: 50), .collect)
            on(
                .received(51),
                takes: .stop(.answer(.declined(.contentTooLarge), .none, .lingers))
            )
            on(.contentRead(isLast: true), .none)
        },
        Transcript("content for a service that breaks off is answered", .chunked, ends: .nothing) {
            on(.asked(contentMax: 120), .collect)
            on(
                .contentMalformed(.chunkSizeSyntax),
                .answer(.malformed(.chunkSizeSyntax), .none, .lingers)
            )
        },
        Transcript("content for a service that does not come is answered", .post, ends: .nothing) {
            on(.asked(contentMax: 120), .collect)
            on(.contentTimedOut, .answer(.contentTimeout, .none, .lingers))
        },
        Transcript("a service's answer for a client that went is late", .get, ends: .nothing) {
            on(.asked(contentMax: 120), .serve)
            on(.clientBroke, closesClient: true)
            on(.clientClosed, .end(.none))
            on(.served, .none)
            on(.storingTimedOut, .none)
        },
        Transcript("a service does not wait for ever for the store", .post, ends: .nothing) {
            on(.asked(contentMax: 120), .collect)
            on(.received(100, isLast: true), takes: .collect)
            on(.contentRead(isLast: true), .serve)
            on(.storingTimedOut, .answer(.declined(.storeUnavailable), .none, .goesOn))
            on(.served, .none)
        },
    ]
}
