/// How a server is asked whether it is well: `check`. Times are in milliseconds.
package struct ServerCheck: Hashable, Sendable {
    /// `path`, mandatory: in origin-form.
    package var path = "/"
    /// `host`: the value of Host; `nil`, the default, for the server as it is written.
    package var host: String?
    /// `status`: of a server that is well. Default 200-399 (HAProxy's).
    package var statuses = 200...399
    /// `interval`: from one check to the next. Default 5s, 10ms…1h.
    package var interval: UInt64 = 5_000
    /// `timeout`: for a whole check. Default 2s, 10ms…1h.
    package var timeout: UInt64 = 2_000
    /// `healthy`: checks one after another that bring a server back. Default 2, 1…100.
    package var healthy = 2
    /// `unhealthy`: checks one after another that take it out. Default 3, 1…100.
    package var unhealthy = 3

    package init() {}
}

/// The result of a check.
package enum CheckResult: Sendable, Equatable {
    case passed
    /// The server answered with another status.
    case status(Int)
    /// It did not answer in time.
    case timeout
    /// It takes no connection, or gave no response.
    case failed

    /// The text for operators.
    package var text: String {
        switch self {
        case .passed: "passed"
        case .status(let status): "status-\(status)"
        case .timeout: "timeout"
        case .failed: "failed"
        }
    }
}

/// The results of a server's checks, as far as they count. A server without a check so far is used.
struct CheckStreak {
    enum Change: Equatable { case up, down }

    private(set) var isDown = false
    /// Consecutive results against the current state.
    private var contrary = 0

    mutating func took(_ result: CheckResult, _ check: ServerCheck) -> Change? {
        guard (result == .passed) == isDown else {
            contrary = 0
            return nil
        }
        contrary += 1
        guard contrary >= (isDown ? check.healthy : check.unhealthy) else { return nil }
        contrary = 0
        isDown.toggle()
        return isDown ? .down : .up
    }
}
