package import HTTPWire
package import Rules

/// The bounds of what is read and held.
package struct LimitSettings: Hashable, Sendable {
    /// `head`: bytes of a request head. Default 16KiB, 1KiB…1MiB; more is answered 431.
    package var head = ByteCount.kibibytes(16)
    /// `target`: bytes of a request target. Default 8KiB, 256B…1MiB; more is answered 414.
    package var target = ByteCount.kibibytes(8)
    /// `trailers`: bytes of a trailer section. Default 4KiB, 0B…64KiB.
    package var trailers = ByteCount.kibibytes(4)
    /// `held_memory`: bytes of held content in memory, of all requests; more goes into files.
    /// Default 64MiB, 1MiB…64GiB.
    package var heldMemory = ByteCount.mebibytes(64)
    /// `held_disk`: bytes of held content in files of `spill_folder`, of all requests; more is
    /// answered 503. Default 1GiB, 0B…1TiB.
    package var heldDisk = ByteCount.gibibytes(1)
    /// `address_held`: bytes of held content, in memory and in files, of one client address; more
    /// is answered 429. Default 256MiB, 64KiB…1TiB: a fourth of `held_disk`, so that one address
    /// can't use it up. Where ``filesAreMemory``: a fourth of `held_memory`.
    package var addressHeld = ByteCount.mebibytes(256)
    /// `key_held`: the same of one key, whatever addresses its requests come from. Without a digest
    /// in the head nothing is verified yet, and the key is the one that the request names. Default
    /// that of `address_held`, same range.
    package var keyHeld = ByteCount.mebibytes(256)
    /// `drain`: bytes that are read away after an early answer. Default 256KiB, 0B…1GiB.
    package var drain = ByteCount.kibibytes(256)
    /// `endpoint_body`: bytes of content for the gateway's own endpoints. Default 16KiB,
    /// 4KiB…1MiB.
    package var endpointBody = ByteCount.kibibytes(16)
    /// `fields`: field lines of a head. Default 100, 10…1000; more is answered 431.
    package var fields = 100
    /// `connections`: client connections of a lane. Default 100000, 1…10000000. Of the requests
    /// that are under way at once on an HTTP/2 connection, each but the first counts as one, here
    /// and in `address_connections`.
    package var connections = 100_000
    /// `pooled`: idle connections of a lane to one server. Default 256, 0…100000.
    package var pooled = 256
    /// `interim_responses`: 1xx responses to one request. Default 16, 0…1000.
    package var interimResponses = 16
    /// `addresses`: client addresses that are distinguished, 64 bytes each. Default 65536,
    /// 1024…16777216.
    package var addresses = 65_536
    /// `address_connections`: connections of one address, on all lanes. Default 16384, 1…1000000 or
    /// `off`. High, since a mobile carrier puts thousands of phones behind one address.
    package var addressConnections: Int? = 16_384
    /// `address_requests`: requests a second of one address; more are answered 429. Default `off`,
    /// 1/s…1000000/s: no number is right for one phone and for a carrier's gateway.
    package var addressRequests: Int?
    /// `address_burst`: requests at once after a pause. Default 200, 1…1000000.
    package var addressBurst = 200
    /// `address_calls`: calls a second of the gateway's own endpoints by one address, twice as many
    /// at once; more are answered 429. Default 1000/s, 1/s…1000000/s or `off`.
    package var addressCalls: Int? = 1_000
    /// `address_failures`: verifications a minute that led to no admission; then proofs from the
    /// address are answered 429 without one. Default 6000/m, 1/m…1000000/m or `off`.
    package var addressFailures: Int? = 6_000
    /// `http2`: of HTTP/2 connections.
    package var http2 = HTTP2Settings()

    /// Whether `spill_folder` is in memory (tmpfs, ramfs). What its files hold then counts as
    /// `held_memory`, and `held_disk` bounds nothing.
    package var filesAreMemory = false
    /// The sizes that the file states.
    package var stated: Set<String> = []

    package init() {}

    /// `spill_folder` is in memory. One address and one key get a fourth of it, or as much as a
    /// rule's content may have.
    ///
    /// - largest: the largest content that a rule holds.
    mutating func countFilesAsMemory(largest: ByteCount) {
        filesAreMemory = true
        let share = max(ByteCount(heldMemory.rawValue / 4), min(largest, heldMemory))
        if !stated.contains("address_held") { addressHeld = min(addressHeld, share) }
        if !stated.contains("key_held") { keyHeld = addressHeld }
    }

    typealias SizeRow = (
        key: String, path: any WritableKeyPath<Self, ByteCount> & Sendable,
        range: ClosedRange<ByteCount>
    )
    typealias CountRow = (
        key: String, path: any WritableKeyPath<Self, Int> & Sendable, range: ClosedRange<Int>
    )

    static let sizes: [SizeRow] = [
        ("head", \.head, .kibibytes(1)...ByteCount.mebibytes(1)),
        ("target", \.target, ByteCount(256)...ByteCount.mebibytes(1)),
        ("trailers", \.trailers, ByteCount(0)...ByteCount.kibibytes(64)),
        ("held_memory", \.heldMemory, .mebibytes(1)...ByteCount.gibibytes(64)),
        ("held_disk", \.heldDisk, ByteCount(0)...ByteCount.gibibytes(1024)),
        ("address_held", \.addressHeld, .kibibytes(64)...ByteCount.gibibytes(1024)),
        ("key_held", \.keyHeld, .kibibytes(64)...ByteCount.gibibytes(1024)),
        ("drain", \.drain, ByteCount(0)...ByteCount.gibibytes(1)),
        ("endpoint_body", \.endpointBody, .kibibytes(4)...ByteCount.mebibytes(1)),
    ]

    static let counts: [CountRow] = [
        ("fields", \.fields, 10...1000), ("connections", \.connections, 1...10_000_000),
        ("pooled", \.pooled, 0...100_000), ("interim_responses", \.interimResponses, 0...1000),
        ("addresses", \.addresses, 1024...16_777_216),
        ("address_burst", \.addressBurst, 1...1_000_000),
    ]

    typealias OptionalRow = (
        key: String, unit: String, path: any WritableKeyPath<Self, Int?> & Sendable
    )

    /// What may be `off`: numbers 1…1000000 with a unit.
    static let optionals: [OptionalRow] = [
        ("address_connections", "", \.addressConnections),
        ("address_requests", "/s", \.addressRequests),
        ("address_calls", "/s", \.addressCalls),
        ("address_failures", "/m", \.addressFailures),
    ]

    /// Reads the section; what it does not say keeps its default.
    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        let keys =
            Self.sizes.map(\.key) + Self.counts.map(\.key) + Self.optionals.map(\.key) + ["http2"]
        guard let node, let reader = MappingReader(node, "limits", keys: keys, log: log) else {
            return
        }
        for row in Self.sizes {
            if let value = reader.bytes(row.key, in: row.range) {
                self[keyPath: row.path] = value.value
                stated.insert(row.key)
            }
        }
        if !stated.contains("key_held") { keyHeld = addressHeld }
        for row in Self.counts {
            if let value = reader.integer(row.key, in: row.range) {
                self[keyPath: row.path] = value.value
            }
        }
        for row in Self.optionals {
            if let value = reader.countOrOff(row.key, unit: row.unit) {
                self[keyPath: row.path] = value.value
            }
        }
        http2 = HTTP2Settings(reader.node("http2"), log: log)
        if reader.has("address_burst"), addressRequests == nil {
            log.error(
                reader.place(of: "address_burst"),
                reader.path("address_burst"),
                found: "a burst without a rate",
                use: "address_requests beside it"
            )
        }
        guard target >= head else { return }
        guard reader.has("target") || reader.has("head") else { return }
        let key = reader.has("target") ? "target" : "head"
        log.error(
            reader.place(of: key),
            reader.path(key),
            found: "a target of \(target.text) in a head of \(head.text)",
            use: "a target smaller than the head"
        )
    }

    /// The bounds of request heads.
    package var requestHead: HeadLimits {
        var limits = HeadLimits()
        limits.headBytesMax = head.rawValue
        limits.targetBytesMax = target.rawValue
        limits.trailerBytesMax = trailers.rawValue
        limits.fieldsMax = fields
        return limits
    }
}
