package import AppleServices

/// What is asked of Apple's servers, with which keys, and how often.
package struct AppleSettings: Sendable {
    /// How a token stands in the field `Authorization` of a call about a receipt.
    package enum Authorization: String, CaseIterable, Hashable, Sendable {
        /// Alone, as Apple's example has it.
        case plain
        /// Behind the word Bearer, as DeviceCheck wants it.
        case bearer
    }

    /// `keys`: what teams prove themselves with. Default none, and then nothing is asked.
    package var credentials: [AppleCredential] = []
    /// `authorization`: default `plain`. Calls of DeviceCheck always have `Bearer`.
    package var authorization = Authorization.plain
    /// `hosts`: where Apple's services are, without a slash at the end. Default Apple's own; none
    /// for keys of a test authority.
    package var hosts: [AppleHost: String] = [:]
    /// `roots`: the certificates of a PEM file, which stand in the place of the system's; `nil` for
    /// the system's.
    package var roots: [UInt8]?
    /// `proxy`: a proxy that takes CONNECT. Default none.
    package var proxy: String?
    /// `timeout`: of a call that says no other, from the hand-in to the answer. Default 10s,
    /// 100ms…5m.
    package var timeout = Duration.seconds(10)
    /// `concurrent`: calls to one host at once. Default 8, 1…64.
    package var concurrent = 8
    /// `queue`: calls that wait for one host. Default 1000, 1…100000. A further one is not made.
    package var queue = 1_000
    /// `rate`: calls to one host in a second. Default 50, 1…1000.
    package var perSecond = 50
    /// `receipts`: how receipts are renewed.
    package var receipts = RenewalSettings()

    package init() {
        for host in AppleHost.all { hosts[host] = host.address }
    }
}
