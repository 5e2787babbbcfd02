/// When a request may be sent to an origin once more, and how many of them at a time.
package struct RetryRule: Sendable {
    /// For one request.
    package var max = 0
    /// The most retries under way, in percent of the requests under way.
    package var share = 20
    /// Retries under way that are allowed in any case.
    package var minimum = 3

    package init() {}

    /// Whether one more may begin. A budget keeps retries from doubling the load of servers that
    /// fail because of their load.
    func allows(retrying: Int, active: Int) -> Bool {
        retrying < Swift.max(minimum, active * share / 100)
    }
}
