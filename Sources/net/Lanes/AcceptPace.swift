/// How many clients a listener takes at one event.
///
/// To ask until none is left costs one system call more for each event, and mostly one client
/// waits. So a listener asks for as many as came lately. Nobody is forgotten: a level-triggered
/// listener that has more is ready again at once, as nginx relies on too (`multi_accept off`).
struct AcceptPace: Equatable {
    /// So many events in a row bring all that they were asked for before more is asked for.
    private static let patience = 4

    /// How many are taken at the next event: 1 to `max`.
    private(set) var count = 1
    private let max: Int
    private var fullEvents = 0

    init(max: Int) { self.max = max }

    /// An event has brought so many: fewer than ``count`` when no more waited.
    mutating func took(_ taken: Int) {
        guard taken >= count else {
            count = Swift.max(taken, 1)
            fullEvents = 0
            return
        }
        fullEvents += 1
        guard fullEvents == Self.patience else { return }
        fullEvents = 0
        count = min(count * 2, max)
    }
}
