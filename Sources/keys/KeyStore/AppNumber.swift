internal import Synchronization

/// An App ID, interned: keys of one app share its text.
package struct AppNumber: Hashable, Sendable {
    let rawValue: UInt32
}

/// The App IDs that have a number. They are those of the configuration and of the stored keys, so
/// the list is as short as the operator made it.
package final class AppNumbers: Sendable {
    private struct State {
        var names: [String] = []
        var numbers: [String: AppNumber] = [:]
    }

    private let state = Mutex(State())

    package init() {}

    /// The number of an App ID, which is the same for the life of the process.
    package func number(of appID: String) -> AppNumber {
        state.withLock { state in
            if let number = state.numbers[appID] { return number }
            let number = AppNumber(rawValue: UInt32(state.names.count))
            state.names.append(appID)
            state.numbers[appID] = number
            return number
        }
    }

    /// The App ID of a number that came from here.
    package func appID(of number: AppNumber) -> String {
        state.withLock { state in
            let index = Int(number.rawValue)
            precondition(index < state.names.count, "AppNumbers: a number of another list")
            return state.names[index]
        }
    }
}
