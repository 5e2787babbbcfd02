import HTTPWire
import Proxy
import Rules

extension ProxyLimits {
    static let rows: [SettingRow<Self>] = [
        SettingRow("head", .bytes(\.requestHead.headBytesMax, .kibibytes(1) ... .mebibytes(1))),
        SettingRow(
            "target",
            .bytes(\.requestHead.targetBytesMax, ByteCount(256) ... .mebibytes(1))
        ),
        SettingRow(
            "trailers",
            .bytes(\.requestHead.trailerBytesMax, ByteCount(0) ... .kibibytes(64))
        ),
        SettingRow("held_memory", .bytes(\.heldMemoryMax, .mebibytes(1) ... .gibibytes(64))),
        SettingRow("held_disk", .bytes(\.heldDiskMax, ByteCount(0) ... .gibibytes(1024))),
        SettingRow("address_held", .bytes(\.addressHeldMax, .kibibytes(64) ... .gibibytes(1024))),
        SettingRow("key_held", .bytes(\.keyHeldMax, .kibibytes(64) ... .gibibytes(1024))),
        SettingRow("drain", .bytes(\.drainBytesMax, ByteCount(0) ... .gibibytes(1))),
        SettingRow("endpoint_body", .bytes(\.endpointBodyMax, .kibibytes(4) ... .mebibytes(1))),
        SettingRow(
            "question_message",
            .bytes(\.questionMessageMax, .kibibytes(64) ... .mebibytes(64))
        ),
        SettingRow("fields", .count(\.requestHead.fieldsMax, 10...1000)),
        SettingRow("connections", .count(\.connectionsMax, 1...10_000_000)),
        SettingRow("pooled", .count(\.pooledMax, 0...100_000)),
        SettingRow("interim_responses", .count(\.interimResponsesMax, 0...1000)),
        SettingRow("addresses", .count(\.addressesMax, 1024...16_777_216)),
        SettingRow("address_burst", .count(\.addressBurst, 1...1_000_000)),
        SettingRow("address_connections", .orOff(\.addressConnectionsMax, unit: "")),
        SettingRow("address_requests", .orOff(\.addressRequests, unit: "/s")),
        SettingRow("address_calls", .orOff(\.addressCalls, unit: "/s")),
        SettingRow("address_failures", .orOff(\.addressFailures, unit: "/m")),
    ]

    /// Reads `limits`.
    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        let reader = SettingRow.read(
            Self.rows,
            before: ["http2"],
            of: node,
            "limits",
            into: &self,
            log: log
        )
        guard let reader else { return }
        if !reader.has("key_held") { keyHeldMax = addressHeldMax }
        SettingRow.read(
            HTTP2Limits.rows,
            of: reader.node("http2"),
            "limits.http2",
            into: &http2,
            log: log
        )
        http2.head = requestHead
        if reader.has("address_burst"), addressRequests == nil {
            reader.error(
                "address_burst",
                found: "a burst without a rate",
                use: "address_requests beside it"
            )
        }
        let (head, target) = (requestHead.headBytesMax, requestHead.targetBytesMax)
        guard target >= head, reader.has("target") || reader.has("head") else { return }
        let key = reader.has("target") ? "target" : "head"
        reader.error(
            key,
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

extension HTTP2Limits {
    static let rows: [SettingRow<Self>] = [
        SettingRow("streams", .count(\.streamsMax, 1...10_000)),
        SettingRow("continuations", .count(\.continuationsMax, 0...1000)),
        SettingRow("stream_window", .bytes(\.streamWindow, .kibibytes(64) ... .mebibytes(16))),
        SettingRow(
            "connection_window",
            .bytes(\.connectionWindow, .kibibytes(64) ... .mebibytes(64))
        ),
        SettingRow("unsent", .bytes(\.unsentBytesMax, .kibibytes(256) ... .gibibytes(1))),
        SettingRow("unsent_total", .bytes(\.unsentTotalMax, .mebibytes(1) ... .gibibytes(64))),
        SettingRow("resets", .orOff(\.resets, unit: "/m")),
        SettingRow("provoked_resets", .orOff(\.provokedResets, unit: "/m")),
        SettingRow("pings", .orOff(\.pings, unit: "/m")),
        SettingRow("settings", .orOff(\.settings, unit: "/m")),
        SettingRow("empty_frames", .orOff(\.emptyFrames, unit: "/m")),
        SettingRow("other_frames", .orOff(\.otherFrames, unit: "/m")),
    ]
}

extension Timeouts {
    static let range: ClosedRange<Duration> = .milliseconds(1)...Duration.seconds(604_800)

    static let rows: [SettingRow<Self>] = [
        SettingRow("head", .milliseconds(\.head, range)),
        SettingRow("body_idle", .milliseconds(\.bodyIdle, range)),
        SettingRow("commit", .milliseconds(\.commit, range)),
        SettingRow("connect", .milliseconds(\.connect, range)),
        SettingRow("first_byte", .milliseconds(\.firstByte, range)),
        SettingRow("response_idle", .milliseconds(\.responseIdle, range)),
        SettingRow("idle", .milliseconds(\.idle, range)),
        SettingRow("pool_idle", .milliseconds(\.poolIdle, range)),
        SettingRow("tunnel_idle", .milliseconds(\.tunnelIdle, range)),
        SettingRow("handshake", .milliseconds(\.handshake, range)),
        SettingRow("linger", .milliseconds(\.linger, range)),
        SettingRow("linger_total", .milliseconds(\.lingerTotal, range)),
        SettingRow("drain", .milliseconds(\.drain, range)),
        SettingRow("drain_idle", .milliseconds(\.drainIdle, range)),
        SettingRow("body_minimum_rate", .byteRate(\.bodyMinimumRate)),
        SettingRow("response_minimum_rate", .byteRate(\.responseMinimumRate)),
        SettingRow("lame_duck", .milliseconds(\.lameDuck, .zero...range.upperBound)),
    ]

    /// Reads `timeouts`.
    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        SettingRow.read(Self.rows, of: node, "timeouts", into: &self, log: log)
    }
}
