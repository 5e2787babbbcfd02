import ClientKit
import Foundation
import PortcullisClient
import Synchronization

/// Lets what holds an app's enrolments and signatures end at once, and adds up how long it would
/// have held them.
final class WaitingTime: Sendable {
    private struct State {
        var seconds = 0.0
        var last: Date?
        var awaited: [(until: Date, task: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    init(_ app: PortcullisSession, _ clock: ShiftedClock) {
        let events = app.events
        Task { [weak self] in
            for await event in events {
                guard let self else { return }
                switch event {
                case .enrolmentHeld(let hold): passed(hold, clock.advance(to: hold.until))
                case .signingDelayed(let until):
                    let seconds = clock.advance(to: until)
                    state.withLock { $0.seconds += seconds }
                default: break
                }
            }
        }
    }

    /// How long, so far.
    var seconds: Double { state.withLock(\.seconds) }

    /// Returns when what held it has ended.
    func awaitEnd(of hold: EnrolmentHold) async {
        await withCheckedContinuation { (task: CheckedContinuation<Void, Never>) in
            let hasEnded = state.withLock { state in
                if let last = state.last, last >= hold.until { return true }
                state.awaited.append((hold.until, task))
                return false
            }
            if hasEnded { task.resume() }
        }
    }

    private func passed(_ hold: EnrolmentHold, _ seconds: Double) {
        let tasks = state.withLock { state in
            state.seconds += seconds
            state.last = max(state.last ?? hold.until, hold.until)
            let due = state.awaited.filter { $0.until <= hold.until }
            state.awaited.removeAll { $0.until <= hold.until }
            return due.map(\.task)
        }
        for task in tasks { task.resume() }
    }
}
