import Synchronization

/// What a part of the stand does in the place of what it should do, and when.
struct PlayedFault: Sendable {
    /// What is done.
    enum Deed: String, Sendable, CaseIterable {
        /// Answers by itself: `status`, `fields`, `content`. With `run` it asks the origin first.
        case answer
        /// Refuses as the gateway does, for `reason`; `seconds` is its `Retry-After`.
        case refuse
        /// Takes the request, and never answers.
        case hang
        /// Ends the connection; the gateway is not asked.
        case cut
        /// Asks the gateway, then ends the connection without an answer.
        case loseAnswer = "lose-answer"
        /// Sends the request to the gateway twice, and hands back the second answer.
        case twice
        /// Waits for `seconds` first.
        case delay
        /// Leaves fields out of the request.
        case stripRequest = "strip-request"
        /// Leaves fields out of the answer.
        case stripAnswer = "strip-answer"
        /// Sets fields of the answer.
        case setAnswer = "set-answer"
        /// Changes a byte of what is signed, on the way to the gateway.
        case tamper
        /// Ends the gateway as a crash does and starts it again, then goes on.
        case restart
        /// The same with an empty store.
        case wipe
        /// The device fails with `error`.
        case fail
    }

    var deed: Deed
    var place = FaultPlace.all
    var method: String?
    /// Only requests with a proof, or only those without one.
    var hasProof: Bool?
    /// Only for this platform.
    var platform: ProvingPlatform?
    var status = 200
    var fields: [(name: String, value: String)] = []
    var names: [String] = []
    var content = ""
    var reason = ""
    var seconds = 0.0
    /// The origin runs the request before the answer is made.
    var runs = false
    var error = ""
    /// The device does its work before it fails.
    var isLate = false
    /// What matches this often first is left alone.
    var after = 0
    /// Each n-th.
    var every = 1
    /// How often at most.
    var times = Int.max
}

/// Where a fault is.
enum FaultPlace: Sendable, Equatable {
    case all
    /// All endpoints of the gateway's.
    case endpoints
    case endpoint(CalledPlace)
    /// What the app asks for.
    case requests
    /// A path; with `/**` at its end also what is below.
    case path(String)
    case device(PlayedDeviceCall)

    init?(_ text: String) {
        switch text {
        case "all": self = .all
        case "endpoints": self = .endpoints
        case "requests": self = .requests
        default:
            if text.hasPrefix("/") {
                self = .path(text)
            } else if let place = CalledPlace(rawValue: text), place != .app {
                self = .endpoint(place)
            } else {
                return nil
            }
        }
    }

    static let words = ["all", "endpoints", "requests", "challenges", "keys", "sessions", "plan"]

    func matches(path: String) -> Bool {
        let called = CalledPlace(path: path)
        switch self {
        case .all: return true
        case .endpoints: return called != .app
        case .endpoint(let place): return called == place
        case .requests: return called == .app
        case .path(let pattern): return Self.matches(path, pattern)
        case .device: return false
        }
    }

    /// Whether a path is this one, or below it where the pattern ends in `/**`.
    static func matches(_ path: String, _ pattern: String) -> Bool {
        guard pattern.hasSuffix("/**") else { return path == pattern }
        return path.hasPrefix(pattern.dropLast(2))
    }
}

/// The faults of a part of the stand, with the count of what they met.
final class FaultList: Sendable {
    private struct Entry {
        let fault: PlayedFault
        var met = 0
        var done = 0

        /// Counts something that the fault matches; whether the fault strikes.
        mutating func strikes() -> Bool {
            met += 1
            guard met > fault.after, (met - fault.after) % fault.every == 0, done < fault.times
            else { return false }
            done += 1
            return true
        }
    }

    private let entries: Mutex<[Entry]>

    init(_ faults: [PlayedFault]) { entries = Mutex(faults.map { Entry(fault: $0) }) }

    /// Other faults from now on.
    func replace(by faults: [PlayedFault]) {
        entries.withLock { $0 = faults.map { Entry(fault: $0) } }
    }

    /// The first fault that strikes.
    func strike(_ matches: (PlayedFault) -> Bool) -> PlayedFault? {
        entries.withLock { entries in
            for index in entries.indices where matches(entries[index].fault) {
                if entries[index].strikes() { return entries[index].fault }
            }
            return nil
        }
    }
}
