/// What the lane tells.
enum EnrolmentNews: Sendable {
    /// All are in, or a fault ended it.
    case finished(String?)
}
