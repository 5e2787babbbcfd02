/// When a server whose requests fail is passed over for a while.
package struct Ejection: Sendable {
    /// Failures one after another; 0 for never.
    package var failures = 5
    /// The statuses that are failures.
    package var statuses = [502, 503, 504]
    /// Milliseconds of the first ejection; it doubles with each one.
    package var time: UInt64 = 10_000
    /// The longest, and how long a server must go well to begin anew.
    package var timeMax: UInt64 = 300_000
    /// The most servers of an origin that are ejected at a time, in percent.
    package var share = 50

    package init() {}

    func isFailure(_ status: Int) -> Bool { status >= 400 && statuses.contains(status) }

    /// Whether one more of `count` servers may be ejected, when `ejected` are.
    func allows(ejected: Int, of count: Int) -> Bool { (ejected + 1) * 100 <= share * count }
}
