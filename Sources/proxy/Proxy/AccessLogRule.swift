package import Verification

/// How the access log is written, and of which requests.
package struct AccessLogRule: Sendable {
    package enum Form: Sendable {
        /// One JSON object a line.
        case json
        /// The combined format of Apache and nginx.
        case combined
    }

    /// How a line of JSON says when the request ended.
    package enum Time: Sendable { case milliseconds, iso8601 }

    package let form: Form
    package let time: Time
    /// Of a million requests that were admitted, so many have a line. All others always have one.
    package let admittedShare: Int

    /// How many refused requests of one address have a line; `nil`: all.
    let refusals: TokenRate?

    /// - admittedShare: 0…1,000,000.
    package init(
        _ form: Form = .json,
        time: Time = .milliseconds,
        admittedShare: Int = LogSampler.whole,
        refusals: TokenRate? = nil
    ) {
        self.form = form
        self.time = time
        self.admittedShare = admittedShare
        self.refusals = refusals
    }

    /// Whether each request has a line.
    var isWhole: Bool { admittedShare == LogSampler.whole }
}

/// Picks a share of requests: evenly, and the same share of any number of them.
package struct LogSampler: Sendable {
    package static let whole = 1_000_000
    private var credit = 0

    /// Whether the next request has a line.
    mutating func takes(share: Int) -> Bool {
        credit += share
        guard credit >= Self.whole else { return false }
        credit -= Self.whole
        return true
    }
}
