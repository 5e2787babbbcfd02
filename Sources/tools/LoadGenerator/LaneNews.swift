/// What a lane tells the campaign.
enum LaneNews: Sendable {
    /// Connections and challenges are there.
    case ready
    /// Everything was sent and answered.
    case finished
    /// It can't begin, for this reason.
    case failed(String)
}
