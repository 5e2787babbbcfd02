package import HTTPWire
package import Proxy
import Rules

extension ProxyLimits: Declared {
    package static let keys = Keys<Self> {
        Key("head", \.requestHead.headBytesMax, .bytes(.kibibytes(1) ... .mebibytes(1)))
            .means("A longer request head is answered 431.")
        Key("target", \.requestHead.targetBytesMax, .bytes(ByteCount(256) ... .mebibytes(1)))
            .means("A longer target is answered 414. It is smaller than the head.")
        Key("trailers", \.requestHead.trailerBytesMax, .bytes(ByteCount(0) ... .kibibytes(64)))
            .means("Longer trailers are answered 431.")
        Key("held_memory", \.heldMemoryMax, .bytes(.mebibytes(1) ... .gibibytes(64)))
            .means("Held content in memory, of all event loops. More goes into files.")
        Key("held_disk", \.heldDiskMax, .bytes(ByteCount(0) ... .gibibytes(1024)))
            .means("Held content in files, of all event loops; then 503.")
        Key("address_held", \.addressHeldMax, .bytes(.kibibytes(64) ... .gibibytes(1024)))
            .means("Held content of one client address; then 429.")
            .because("a fourth of held_disk, so that one address can't use it up")
        Key("key_held", \.keyHeldMax, .bytes(.kibibytes(64) ... .gibibytes(1024)))
            .means("Held content of one key, from all addresses; then 429.")
            .because("that of address_held")
        Key("drain", \.drainBytesMax, .bytes(ByteCount(0) ... .gibibytes(1)))
            .means("Content that is read and dropped after an early answer.")
        Key("endpoint_body", \.endpointBodyMax, .bytes(.kibibytes(4) ... .mebibytes(1)))
            .means("Content for the gateway's own endpoints; then 413.")
        Key("question_message", \.questionMessageMax, .bytes(.kibibytes(64) ... .mebibytes(64)))
            .means("The message by which Envoy asks over gRPC, with the request's content.")
        Key("fields", \.requestHead.fieldsMax, .count(10...1000))
            .means("A head with more field lines is answered 431.")
        Key("connections", \.connectionsMax, .count(1...10_000_000))
            .means("Clients of one event loop. The next is closed at once.")
        Key("pooled", \.pooledMax, .count(0...100_000))
            .means("Idle connections of an event loop to one server. The next is closed.")
        Key("interim_responses", \.interimResponsesMax, .count(0...1000))
            .means("1xx responses to one request; then 502.")
        Key("addresses", \.addressesMax, .count(1024...16_777_216))
            .means("Client addresses that have an entry each, of 60 bytes, on all event loops.")
            .needs(.upgrade)
        Key("address_burst", \.addressBurst, .count(1...1_000_000))
            .means("Requests of one address that may come at once, beside address_requests.")
        Key("address_connections", \.addressConnectionsMax, .orOff(unit: ""))
            .means("Connections of one address. The next is closed at once.")
            .because("high, since a mobile carrier puts thousands of phones behind one address")
        Key("address_requests", \.addressRequests, .orOff(unit: "/s"))
            .means("Requests of one address; then 429.")
            .because("no number is right for one phone and for a carrier's gateway")
        Key("address_calls", \.addressCalls, .orOff(unit: "/s"))
            .means("Calls of the gateway's endpoints by one address; then 429.")
        Key("address_failures", \.addressFailures, .orOff(unit: "/m"))
            .means("Verifications for one address that led to no admission; then 429 without one.")
        Key("http2", \.http2, .mapping).means("The limits of HTTP/2 connections.")
    }.checked { reader, limits in
        if !reader.has("key_held") { limits.keyHeldMax = limits.addressHeldMax }
        limits.http2.head = limits.requestHead
        if reader.has("address_burst"), limits.addressRequests == nil {
            reader.error(
                "address_burst",
                found: "a burst without a rate",
                use: "address_requests beside it"
            )
        }
        let head = limits.requestHead.headBytesMax
        let target = limits.requestHead.targetBytesMax
        guard target >= head, reader.has("target") || reader.has("head") else { return }
        reader.error(
            reader.has("target") ? "target" : "head",
            found: "a target of \(ByteCount(target).text) in a head of \(ByteCount(head).text)",
            use: "a target smaller than the head"
        )
    }

    /// `spill_folder` is in memory. One address and one key get a fourth of it, or as much as a
    /// rule's content may have, unless the file states what they get.
    ///
    /// - largest: the largest content that a rule holds.
    /// - stated: whether the file has a key.
    mutating func countFilesAsMemory(largest: ByteCount, stated: (String) -> Bool) {
        filesAreMemory = true
        let share = max(heldMemoryMax / 4, min(largest.rawValue, heldMemoryMax))
        if !stated("address_held") { addressHeldMax = min(addressHeldMax, share) }
        if !stated("key_held") { keyHeldMax = addressHeldMax }
    }
}

extension HTTP2Limits: Declared {
    package static let keys = Keys<Self> {
        Key("streams", \.streamsMax, .count(1...10_000))
            .means("Requests of a connection at once. The next is refused, and may be repeated.")
        Key("continuations", \.continuationsMax, .count(0...1000))
            .means("CONTINUATION frames of a head. More end the connection.")
        Key("stream_window", \.streamWindow, .bytes(.kibibytes(64) ... .mebibytes(16)))
            .means("Content of a request that may come before some has gone on.")
        Key("connection_window", \.connectionWindow, .bytes(.kibibytes(64) ... .mebibytes(64)))
            .means("Content of all requests of a connection that may come before some has gone on.")
        Key("unsent", \.unsentBytesMax, .bytes(.kibibytes(256) ... .gibibytes(1)))
            .means("Responses that wait on a connection. Beyond it those with the most are reset.")
        Key("unsent_total", \.unsentTotalMax, .bytes(.mebibytes(1) ... .gibibytes(64)))
            .means("The same for all connections together, an equal share for each event loop.")
        Key("resets", \.resets, .orOff(unit: "/m"))
            .means("Requests that the client gives up. More end the connection.")
        Key("provoked_resets", \.provokedResets, .orOff(unit: "/m"))
            .means("Requests that end by the client's errors. More end the connection.")
        Key("pings", \.pings, .orOff(unit: "/m")).means("PING frames. More end the connection.")
        Key("settings", \.settings, .orOff(unit: "/m"))
            .means("SETTINGS frames. More end the connection.")
        Key("empty_frames", \.emptyFrames, .orOff(unit: "/m"))
            .means("Frames that carry nothing. More end the connection.")
        Key("other_frames", \.otherFrames, .orOff(unit: "/m"))
            .means("PRIORITY frames and unknown ones. More end the connection.")
    }
}

extension Timeouts: Declared {
    static let range: ClosedRange<Duration> = .milliseconds(1)...Duration.seconds(604_800)
    private static let time = ValueForm<UInt64>.milliseconds(range)

    package static let keys = Keys<Self> {
        Key("head", \.head, time)
            .means("From the first byte of a request to the end of its head; then 408.")
        Key("body_idle", \.bodyIdle, time)
            .means("For the next byte of content while the origin takes them; then 408.")
        Key("commit", \.commit, time)
            .means("For the disk, until a request's counter or an enrolled key is on it; then 503.")
            .because("longer than another process may hold up a transaction")
        Key("connect", \.connect, time)
            .means("For a connection to a server; then the next server, at last 504.")
        Key("first_byte", \.firstByte, time)
            .means("From the end of a request to the head of its response; then 504.")
        Key("response_idle", \.responseIdle, time)
            .means("For the next byte of a response, and for a party to take what waits for it.")
        Key("idle", \.idle, time).means("For the next request on a client's connection.")
        Key("pool_idle", \.poolIdle, time)
            .means("How long an unused connection to an origin is kept: less than origins keep it.")
        Key("tunnel_idle", \.tunnelIdle, time)
            .means("For the next byte of a tunnel, in either direction.")
        Key("handshake", \.handshake, time)
            .means("For the PROXY header, then TLS, and the first byte of a new connection.")
        Key("linger", \.linger, time)
            .means("For the next byte of a refused client that still sends.")
            .because("that of nginx's lingering_timeout")
        Key("linger_total", \.lingerTotal, time).means("For all of what such a client still sends.")
            .because("that of nginx's lingering_time")
        Key("drain", \.drain, time)
            .means("How long requests under way may go on after the signal to stop.")
        Key("drain_idle", \.drainIdle, time)
            .means("How long a client's connection still takes a request after the signal to stop.")
        Key("body_minimum_rate", \.bodyMinimumRate, .byteRate)
            .means("The rate at which content must come; 0B/s for none.")
        Key("response_minimum_rate", \.responseMinimumRate, .byteRate)
            .means("The rate at which a client must take a response; 0B/s for none.")
        Key("lame_duck", \.lameDuck, .milliseconds(.zero...range.upperBound))
            .means("How long /readyz answers 503, after the signal to stop, while all is served.")
    }
}
