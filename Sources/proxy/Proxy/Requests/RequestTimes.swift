/// How long the parts of a request took, for the log and the metrics: in microseconds, at least
/// one; 0 where there was no such part. A request keeps it, so it is small.
struct RequestTimes {
    /// The judge's work on head and content, with all that it verifies itself.
    private(set) var judging: UInt32 = 0
    /// The wait for a commit: of the counter, or of a key that the store is asked for.
    private(set) var commit: UInt32 = 0
    /// The wait for other parties: Apple about the device, or those that know a token.
    private(set) var party: UInt32 = 0
    /// From a server's connection to the head of its response, in the last attempt.
    private(set) var origin: UInt32 = 0
    /// Until the client's content had come whole, where it did not come with the head.
    private(set) var upload: UInt32 = 0

    /// What takes its time.
    enum Part { case judging, commit, party, origin, upload }

    /// All waits.
    var waited: UInt64 { UInt64(commit) + UInt64(party) }

    /// Adds the time of a part. A part may happen more than once.
    ///
    /// - since, until: monotonic nanoseconds.
    mutating func add(_ part: Part, since: UInt64, until: UInt64) {
        switch part {
        case .judging: Self.add(until &- since, to: &judging)
        case .commit: Self.add(until &- since, to: &commit)
        case .party: Self.add(until &- since, to: &party)
        case .origin: Self.add(until &- since, to: &origin)
        case .upload: Self.add(until &- since, to: &upload)
        }
    }

    private static func add(_ nanoseconds: UInt64, to sum: inout UInt32) {
        sum = UInt32(clamping: UInt64(sum) + max(nanoseconds / 1000, 1))
    }
}
