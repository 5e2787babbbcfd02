/// What a lane has in the end.
struct LaneResults: Sendable {
    let measurements: Measurements
    let endCounter: UInt32
}
