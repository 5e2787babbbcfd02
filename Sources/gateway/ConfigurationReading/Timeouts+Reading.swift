import Proxy

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
