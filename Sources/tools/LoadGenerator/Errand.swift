/// What a connection's request is, so that its answer can be judged.
struct Errand {
    var sending = Sending.good
    /// The number of the request on its lane.
    var number: UInt64 = 0
    /// The device that is busy with it.
    var device: Int?
    /// When it was due, and when it was sent: nanoseconds of the monotonic clock.
    var due: UInt64 = 0
    var sentAt: UInt64 = 0
}
