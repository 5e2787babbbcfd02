import Cryptography
import Dispatch
import EventLoops
import KeyAttestation
import Logging
import OutboundCalls
import Rules
import Services
import Signatures
import Synchronization
package import Verification

/// Keeps Google's list of revoked certificates: fetches it, keeps a copy on disk, gives it to
/// enrolments, and has the enrolled keys compared with each newer one.
///
/// It works only where an app is an Android app. Its state changes on its own queue; the lock is
/// for readers.
final class StatusListKeeper: Party {
    /// The settings that a reload replaces.
    private struct Settings: Equatable {
        var google: GoogleSettings
        /// Whether any app needs the list.
        var isNeeded: Bool

        init(_ settings: PartySettings) {
            google = settings.google
            isNeeded = settings.apps.contains { $0.android != nil }
        }

        var bounds: FetchSchedule.Bounds {
            FetchSchedule.Bounds(least: google.intervalMin, most: google.intervalMax)
        }
    }

    private struct State {
        var settings: Settings
        var schedule: FetchSchedule
        var outcomes: [String: UInt64] = [:]
        var pace = NoticePace<String>()
        /// A timer with a lower number than this one does nothing.
        var timer: UInt64 = 0
        var isEnded = false
    }

    /// Seconds by which a copy's date may be in the future, since clocks differ.
    private static let aheadMax: Int64 = 3_600

    private let context: PartyContext
    /// The list in use.
    private let current: CurrentStatusList
    /// The copy on disk; `nil` without a store.
    private let path: String?
    private let queue = DispatchQueue(label: "portcullis.google", qos: .utility)
    private let state: Mutex<State>
    private let comparer: ListedKeyComparer

    init(_ settings: PartySettings, of current: CurrentStatusList, _ context: PartyContext) {
        (self.current, self.context) = (current, context)
        path = context.store.copies.map { $0 + ".google-status" }
        let settings = Settings(settings)
        state = Mutex(State(settings: settings, schedule: FetchSchedule(settings.bounds)))
        comparer = ListedKeyComparer(context)
    }

    /// Reads the copy on disk, so that the first enrolment finds a list. Then begins to fetch, and
    /// to compare.
    func start() {
        prepare()
        queue.async { [self] in begin() }
    }

    private func prepare() {
        let settings = state.withLock(\.settings)
        guard settings.isNeeded else { return }
        current.known = stored(settings.google)
    }

    func loaded(_ settings: PartySettings) {
        let next = Settings(settings)
        queue.async { [self] in
            let before = state.withLock { state in
                defer {
                    state.settings = next
                    state.schedule.bounds = next.bounds
                }
                return state.settings
            }
            guard next != before else { return }
            if !next.isNeeded || next.google.statusListURL != before.google.statusListURL {
                current.known = nil
            }
            if current.known == nil { prepare() }
            begin()
        }
    }

    /// Changes no key any more, either.
    func end() {
        state.withLock { $0.isEnded = true }
        comparer.end()
    }

    // MARK: On the queue

    private func begin() {
        guard let known = current.known else { return wait(nil) }
        let age = known.source == .release ? nil : context.wallSeconds - known.date
        let pause = state.withLock { $0.schedule.first(age: age) }
        let date = UnixTime(seconds: known.date).iso8601
        let words = "\(known.list.count) entries, \(known.source.words), of \(date)"
        context.log.notice("Google's status list: \(words)")
        comparer.compare(with: known)
        wait(pause)
    }

    /// - pause: the time until the next call; `nil` for none.
    private func wait(_ pause: Duration?) {
        let number = state.withLock { state in
            state.timer &+= 1
            return state.timer
        }
        guard let pause else { return }
        queue.asyncAfter(deadline: .now() + DispatchTimeInterval(pause)) { [weak self] in
            guard let self, state.withLock({ $0.timer == number && !$0.isEnded }) else { return }
            fetch(number)
        }
    }

    private func fetch(_ number: UInt64) {
        let google = state.withLock(\.settings.google)
        var request = HTTPSRequest(url: google.statusListURL, timeout: google.timeout)
        request.roots = google.roots
        request.proxy = google.proxy
        request.answerBytesMax = StatusList.bytesMax
        request.keptFields = FetchedFields.names
        request.fields = [("Accept", "application/json")]
        if let tag = current.known?.tag { request.fields.append(("If-None-Match", tag)) }
        context.transport.send(request) { [weak self] result in
            guard let self else { return }
            queue.async { self.ended(result, number) }
        }
    }

    private func ended(_ result: Result<HTTPSAnswer, HTTPSFault>, _ number: UInt64) {
        // A reload has asked elsewhere meanwhile.
        guard state.withLock({ $0.timer == number && !$0.isEnded }) else { return }
        switch result {
        case .failure(let fault):
            failed(CallFailure(fault.reason).rawValue, fault.detail, retryAfter: nil)
        case .success(let answer):
            let reply = StatusListReply(
                status: answer.status,
                content: answer.content,
                fields: answer.fields,
                known: current.known,
                now: context.wallSeconds
            )
            switch reply {
            case .list(let list): take(list, answer)
            case .unchanged(let date): confirm(date, answer)
            case .refused(.status):
                failed("status", "answered \(answer.status)", retryAfter: answer.retryAfter)
            case .refused(.unreadable):
                failed("unreadable", "what came is no list", retryAfter: nil)
            case .refused(.shrunk):
                failed(
                    "shrunk",
                    "what came has fewer than half of the entries of the list before",
                    retryAfter: nil
                )
            }
        }
    }

    private func take(_ list: KnownStatusList, _ answer: HTTPSAnswer) {
        let before = current.known
        current.known = list
        if let path {
            let url = state.withLock(\.settings.google.statusListURL)
            let copy = FetchedCopy(
                title: KnownStatusList.copyTitle,
                url: url,
                date: list.date,
                tag: list.tag,
                text: answer.content
            )
            write(copy, to: path)
        }
        if before?.list != list.list {
            let count = list.list.count
            context.log.notice("Google's status list: a newer one came, with \(count) entries")
        }
        answered("fetched", answer, with: list)
    }

    /// The list in use is still the newest: it has another date, in memory, and on disk where the
    /// copy is one of this list.
    private func confirm(_ date: Int64, _ answer: HTTPSAnswer) {
        guard var known = current.known else { return }
        (known.date, known.source) = (date, .google)
        current.known = known
        if let path,
            let bytes = try? WholeFile.read(path, bytesMax: KnownStatusList.copyBytesMax),
            var copy = FetchedCopy(bytes, title: KnownStatusList.copyTitle),
            // A copy that could not be replaced has an older list. With a later date it would bring
            // back keys that the newer list has revoked.
            copy.tag == known.tag
        {
            copy.date = date
            write(copy, to: path)
        }
        answered("unchanged", answer, with: known)
    }

    private func answered(
        _ outcome: String,
        _ answer: HTTPSAnswer,
        with known: KnownStatusList
    ) {
        let freshness = FetchedFields(answer.fields).freshness
        let pause = state.withLock { state in
            state.outcomes[outcome, default: 0] &+= 1
            return state.schedule.answered(fresh: freshness, random: RandomBytes.word())
        }
        comparer.compare(with: known)
        wait(pause)
    }

    private func failed(_ outcome: String, _ detail: String, retryAfter: Int?) {
        let (pause, untold) = state.withLock { state in
            state.outcomes[outcome, default: 0] &+= 1
            return (
                state.schedule.failed(retryAfter: retryAfter, random: RandomBytes.word()),
                state.pace.untold(of: outcome, now: MonotonicClock.nanoseconds)
            )
        }
        if untold != nil {
            context.log.warning(
                """
                Google's status list can't be fetched, \(outcome): \(detail); the list before \
                stays in use; more: portcullis help google-services
                """
            )
        }
        wait(pause)
    }

    // MARK: The disk

    /// The copy on disk, or the list of the release.
    private func stored(_ google: GoogleSettings) -> KnownStatusList? {
        if let path {
            do throws(WholeFile.Fault) {
                let bytes = try WholeFile.read(path, bytesMax: KnownStatusList.copyBytesMax)
                if let bytes {
                    let copy = FetchedCopy(bytes, title: KnownStatusList.copyTitle)
                    if var known = copy.flatMap({ KnownStatusList($0) }) {
                        // A clock that was set back since: the list may be of any age.
                        if known.date > context.wallSeconds + Self.aheadMax { known.date = 0 }
                        // Another address may have another list.
                        if copy?.url == google.statusListURL { return known }
                    } else {
                        tell("the copy \(path) can't be understood, and is replaced")
                    }
                }
            } catch {
                tell("the copy \(path): \(error.text)")
            }
        }
        return try? KnownStatusList.ofRelease()
    }

    private func write(_ copy: FetchedCopy, to path: String) {
        do throws(WholeFile.Fault) {
            try WholeFile.replace(path, by: copy.bytes)
        } catch {
            tell("\(error.text); a restart begins with an older list")
        }
    }

    private func tell(_ text: String) {
        context.log.warning("Google's status list: \(text)")
    }

    // MARK: For operators

    var facts: [any PartyFacts] { [listFacts] }

    /// `nil` where no app needs the list.
    private var listFacts: StatusListFacts? {
        guard let known = current.known else { return nil }
        var facts = StatusListFacts()
        facts.source = known.source.rawValue
        facts.entries = known.list.count
        facts.dateSeconds = known.date
        facts.ageSeconds = max(context.wallSeconds - known.date, 0)
        let outcomes = state.withLock(\.outcomes)
        facts.fetches = outcomes.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        facts.keys = comparer.facts
        return facts
    }
}

/// Google's list that is in use, for enrolments on every event loop. An enrolment is rare, and
/// takes the lock for the time of a copy.
package final class CurrentStatusList: Sendable {
    private let state = Mutex<KnownStatusList?>(nil)

    init() {}

    /// The list in use; `nil` where no app needs one.
    var known: KnownStatusList? {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }

    /// The same for an enrolment, which judges its age.
    package var newest: DatedStatusList? {
        known.map { DatedStatusList($0.list, fetchedAt: $0.date) }
    }
}

extension KnownStatusList.Source {
    fileprivate var words: String {
        switch self {
        case .google: "from Google"
        case .copy: "from the copy on disk"
        case .release: "from the release"
        }
    }
}
