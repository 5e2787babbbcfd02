import HTTPWire
import Rules
import Services
import Verification

@testable import Proxy

// Responses, tunnels and their ends.
extension Transcript {
    static let responses: [Transcript] = [
        Transcript("a response ends the request", .get, ends: .whole) {
            sent()
            on(.clientBroke, closesClient: true)
            response(.drop)
            on(.clientClosed, .none)
            on(.contentTimedOut, .none)
        },
        Transcript(
            "a connection that was authenticated is for nobody else",
            RequestFacts(.get, .none, asking: .authentication),
            ends: .whole
        ) {
            sent()
            response(.drop, .close)
        },
        Transcript("a connection that the response authenticates is closed", .get, ends: .whole) {
            sent()
            on(.responseBegan(.final(.drops)), .relay(.behindRequest, .drop))
            on(.responseEnded, .finish(.close))
        },
        Transcript(
            "content that may be left unread isolates its connection",
            RequestFacts(.get, .length(100), asking: .isolation),
            ends: .whole
        ) {
            routing
            on(.took(100))
            on(.unjudged, .connect(.first))
            given()
            response(.drop, .close)
        },
        Transcript("an early response is the connection's last", .post, ends: .cutShort(.anything))
        {
            streaming()
            on(.responseBegan(.final(.keeps)), .relay(.early, .keep))
            on(.contentReady, .readContent)
            on(.received(60), takes: .send)
            on(.contentRead(isLast: false), .sendContent(.more))
            on(.originQueued)
            on(.contentTimedOut, .awaitContent)
            on(.originDrained, .readContent)
            on(.responseEnded, .finish(.reset))
        },
        Transcript("an early response may outlast the content", .post, ends: .whole) {
            streaming()
            on(.responseBegan(.final(.keeps)), .relay(.early, .keep))
            on(.received(100, isLast: true), takes: .send)
            on(.contentRead(isLast: true), .sendContent(.last))
            on(.originQueued)
            on(.contentSent, .endRequest(.queued, .keep))
            on(.originDrained, .endRequest(.clear, .keep))
            on(.responseEnded, .finish(.pool))
        },
        Transcript("an early response goes beside held content", .post, .holding, ends: .whole) {
            held(100)
            on(.connected(inMemory: 40), .sendHead(heldBytes: 40, .byReset))
            on(.originQueued)
            on(.headSent, .none)
            on(.responseBegan(.final(.keeps)), .relay(.early, .keep))
            on(.originDrained, .sendHeld(from: 40))
            on(.heldSent(60), .endRequest(.clear, .drop))
            on(.responseEnded, .finish(.pool))
        },
        Transcript(
            "an early response goes beside released content",
            .chunked,
            .holding,
            ends: .whole
        ) {
            holding(.observed)
            on(.received(100), takes: .hold)
            on(.holdFailed(.heldFull), takesAnew: .append)
            on(.contentRead(isLast: false), .release)
            on(.connected(inMemory: 100), .sendHead(heldBytes: 0, .byReset))
            on(.headSent, .sendHeld(from: 0))
            on(.responseBegan(.final(.keeps)), .relay(.early, .keep))
            on(.heldSent(100), .streamOn)
            on(.contentRead(isLast: true), .sendContent(.last))
            on(.contentSent, .endRequest(.clear, .keep))
            on(.responseEnded, .finish(.pool))
        },
        Transcript("a response that breaks off is cut off", .get, ends: .whole) {
            sent()
            on(.responseBegan(.final(.keeps)), .relay(.behindRequest, .drop))
            on(.originBroke(.something), .cutOff(.failed(.originClosed), .close))
            on(.responseEnded, .none)
        },
        Transcript("a response with broken chunks is cut off", .get, ends: .whole) {
            sent()
            on(.responseBegan(.final(.keeps)), .relay(.behindRequest, .drop))
            on(
                .responseMalformed(.responseMalformed),
                .cutOff(.failed(.responseMalformed), .close)
            )
        },
        Transcript("a response that stands still is cut off", .get, ends: .whole) {
            sent()
            on(.responseBegan(.final(.keeps)), .relay(.behindRequest, .drop))
            on(.originTimedOut(client: .queued), .awaitOrigin)
            on(.originTimedOut(client: .clear), .cutOff(.failed(.originTimeout), .close))
        },
        Transcript(
            "an early response is cut off with its content",
            .post,
            ends: .cutShort(.anything)
        ) {
            streaming()
            on(.responseBegan(.final(.keeps)), .relay(.early, .keep))
            on(.contentTimedOut, .cutOff(.contentTimeout, .reset))
        },
        Transcript(
            "an early response is cut off with broken chunks",
            .chunked,
            ends: .cutShort(.anything)
        ) {
            streaming()
            on(.responseBegan(.final(.keeps)), .relay(.early, .keep))
            on(.contentMalformed(.chunkDataEnd), .cutOff(.malformed(.chunkDataEnd), .reset))
        },
        Transcript(
            "held content that can't be read cuts a response off",
            .post,
            .holding,
            ends: .cutShort(.pass)
        ) {
            held(100)
            on(.connected(inMemory: 40), .sendHead(heldBytes: 40, .byReset))
            on(.headSent, .sendHeld(from: 40))
            on(.responseBegan(.final(.keeps)), .relay(.early, .keep))
            on(.heldUnreadable, .cutOff(.declined(.spillFailed), .reset))
        },
        Transcript(
            "a write that fails beside a response ends the content",
            .post,
            ends: .cutShort(.anything)
        ) {
            streaming()
            on(.responseBegan(.final(.keeps)), .relay(.early, .keep))
            on(.received(60), takes: .send)
            on(.contentRead(isLast: false), .sendContent(.more))
            on(.writeFailed(isUntouched: false), .readLastWords)
            on(.lastWordsRead(.something), .none)
            on(.contentReady, .none)
            on(.responseEnded, .finish(.reset))
        },
        Transcript("a client that goes during its response", .get, ends: .whole) {
            sent()
            on(.responseBegan(.final(.keeps)), .relay(.behindRequest, .drop))
            on(.clientBroke, closesClient: true)
            on(.clientClosed, .end(.close))
            on(.responseEnded, .none)
            on(.originBroke(.something), .none)
        },
        Transcript("a switch of protocols makes a tunnel", .upgrade, ends: .whole) {
            sent()
            on(.responseBegan(.switching), .beginTunnel)
            on(.tunnelBegan)
        },
        Transcript("a client that goes before its tunnel", .upgrade, ends: .whole) {
            sent()
            on(.responseBegan(.switching), .beginTunnel)
            on(.clientClosed, .end(.close))
        },
    ]
}
