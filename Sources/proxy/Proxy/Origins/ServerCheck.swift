/// How a server is asked whether it is well.
package struct ServerCheck: Sendable {
    /// In origin-form.
    package var path = "/"
    /// The value of Host; `nil` for the server as it is written.
    package var host: String?
    /// Those of a server that is well.
    package var statuses = 200...399
    /// Milliseconds from one check to the next.
    package var interval: UInt64 = 5_000
    /// Milliseconds for a whole check.
    package var timeout: UInt64 = 2_000
    /// Checks one after another that bring a server back.
    package var healthy = 2
    /// Checks one after another that take it out.
    package var unhealthy = 3

    package init() {}
}

/// What a check has shown.
package enum CheckResult: Sendable, Equatable {
    case passed
    /// The server answered with another status.
    case status(Int)
    /// It did not answer in time.
    case timeout
    /// It takes no connection, or gave no response.
    case failed

    /// As operators read it.
    package var text: String {
        switch self {
        case .passed: "passed"
        case .status(let status): "status-\(status)"
        case .timeout: "timeout"
        case .failed: "failed"
        }
    }
}

/// The results of a server's checks, as far as they count. A server that was never checked is used.
struct CheckStreak {
    enum Change: Equatable { case up, down }

    private(set) var isDown = false
    /// Results one after another that speak for a change.
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
