import Cryptography
import Dispatch
import Encodings
import EventLoops
import Logging
import OutboundCalls
import Signatures
import Synchronization
import Tokens

/// An issuer's set of public keys: fetched from its address in the background, with a copy on disk.
///
/// The newest set that could be read stays in use, however old: a token's own end bounds what an
/// old key may do. A token that names an unknown key has the set fetched early, at most once in the
/// address's shortest interval, whatever strangers send.
///
/// Its state changes on its own queue; the lock is for readers.
final class FetchedKeySet: Sendable {
    private struct State {
        var keys: TokenKeySet?
        /// The `ETag` of the set; `nil` where there was none.
        var tag: String?
        var schedule: FetchSchedule
        var pace = NoticePace<String>()
        /// A timer with a lower number than this one does nothing.
        var timer: UInt64 = 0
        /// When the last call began, monotonic nanoseconds; `nil` before the first one.
        var askedAt: UInt64?
        var isAsking = false
        var isEnded = false
        var facts: KeySetFacts
        /// Second of Unix time of the last answer, or of the copy's; `nil` before both.
        var confirmedAt: Int64?
    }

    private static let title = "portcullis-key-set 1"

    let address: KeySetAddress
    /// The names of the proofs that use it, for messages.
    private let name: String
    /// The copy on disk; `nil` without a store.
    private let path: String?
    private let context: PartyContext
    private let queue: DispatchQueue
    private let state: Mutex<State>

    init(_ address: KeySetAddress, name: String, _ context: PartyContext) {
        self.address = address
        self.name = name
        self.context = context
        path = context.store.copies.map { "\($0).keys-\(Self.suffix(of: address.url))" }
        queue = DispatchQueue(label: "portcullis.keys.\(name)", qos: .utility)
        let bounds = FetchSchedule.Bounds(least: address.intervalMin, most: address.intervalMax)
        state = Mutex(State(schedule: FetchSchedule(bounds), facts: KeySetFacts(proof: name)))
    }

    private static func suffix(of url: String) -> String {
        Hex.text(SHA256.digest(of: Array(url.utf8)).array.prefix(8))
    }

    /// The set in use; `nil` before the first one came.
    var keys: TokenKeySet? { state.withLock(\.keys) }

    /// The state for operators.
    var facts: KeySetFacts {
        let now = context.wallSeconds
        return state.withLock { state in
            var facts = state.facts
            facts.ageSeconds = state.confirmedAt.map { max(now - $0, 0) }
            return facts
        }
    }

    /// Reads the copy on disk, and begins to fetch. Waits for the disk.
    func start() {
        let age = readCopy()
        queue.async { [self] in wait(state.withLock { $0.schedule.first(age: age) }) }
    }

    /// Makes no further call.
    func end() { state.withLock { $0.isEnded = true } }

    /// A token names a key that the set does not have.
    func missed() {
        let now = MonotonicClock.nanoseconds
        let least = UInt64(clamping: address.intervalMin.milliseconds) &* 1_000_000
        let asks = state.withLock { state in
            state.facts.misses &+= 1
            guard !state.isAsking, !state.isEnded else { return false }
            return state.askedAt.map { now &- $0 >= least } ?? true
        }
        guard asks else { return }
        queue.async { [self] in wait(.zero) }
    }

    // MARK: On the queue

    private func wait(_ pause: Duration) {
        let number = state.withLock { state in
            state.timer &+= 1
            return state.timer
        }
        queue.asyncAfter(deadline: .now() + DispatchTimeInterval(pause)) { [weak self] in
            self?.fetch(number)
        }
    }

    private func fetch(_ number: UInt64) {
        let tag = state.withLock { state -> String?? in
            guard state.timer == number, !state.isEnded, !state.isAsking else { return nil }
            state.isAsking = true
            state.askedAt = MonotonicClock.nanoseconds
            return .some(state.tag)
        }
        guard let tag else { return }
        var request = HTTPSRequest(url: address.url, timeout: address.timeout)
        request.roots = address.roots
        request.proxy = address.proxy
        request.answerBytesMax = TokenKeySet.bytesMax
        request.keptFields = FetchedFields.names
        request.fields = [("Accept", "application/jwk-set+json, application/json")]
        if let tag { request.fields.append(("If-None-Match", tag)) }
        context.transport.send(request) { [weak self] result in
            guard let self else { return }
            queue.async { self.ended(result) }
        }
    }

    private func ended(_ result: Result<HTTPSAnswer, HTTPSFault>) {
        state.withLock { $0.isAsking = false }
        switch result {
        case .failure(let fault): failed("\(fault.reason)", fault.detail, retryAfter: nil)
        case .success(let answer):
            switch answer.status {
            case 200: take(answer)
            case 304: confirm(answer)
            default: failed("status", "answered \(answer.status)", retryAfter: answer.retryAfter)
            }
        }
    }

    private func take(_ answer: HTTPSAnswer) {
        let keys: TokenKeySet
        do throws(TokenKeySet.Fault) {
            keys = try TokenKeySet(json: answer.content)
        } catch {
            return failed("unreadable", "what came is no set: \(error.detail)", retryAfter: nil)
        }
        let tag = FetchedFields(answer.fields).tag
        state.withLock { state in
            state.keys = keys
            state.tag = tag
            state.facts.keys = keys.count
            state.facts.fetched &+= 1
        }
        write(
            FetchedCopy(
                title: Self.title,
                url: address.url,
                date: context.wallSeconds,
                tag: tag,
                text: answer.content
            )
        )
        answered(answer)
    }

    private func confirm(_ answer: HTTPSAnswer) {
        state.withLock { $0.facts.unchanged &+= 1 }
        answered(answer)
    }

    private func answered(_ answer: HTTPSAnswer) {
        let freshness = FetchedFields(answer.fields).freshness
        let now = context.wallSeconds
        wait(
            state.withLock { state in
                state.confirmedAt = now
                return state.schedule.answered(fresh: freshness, random: RandomBytes.word())
            }
        )
    }

    private func failed(_ outcome: String, _ detail: String, retryAfter: Int?) {
        let (pause, untold, isUnknown) = state.withLock { state in
            state.facts.failed &+= 1
            return (
                state.schedule.failed(retryAfter: retryAfter, random: RandomBytes.word()),
                state.pace.untold(of: outcome, now: MonotonicClock.nanoseconds),
                state.keys == nil
            )
        }
        if untold != nil {
            let use = isUnknown ? "no token can be checked" : "the set before stays in use"
            context.log.warning(
                """
                the keys of the proof \(name) can't be fetched, \(outcome): \(detail); \(use); \
                next: see rules/docs/tokens.md
                """
            )
        }
        wait(pause)
    }

    // MARK: The disk

    /// - Returns: seconds since the copy was fetched; `nil` without one.
    private func readCopy() -> Int64? {
        guard let path else { return nil }
        do throws(WholeFile.Fault) {
            let limit = TokenKeySet.bytesMax + FetchedCopy.headBytesMax
            guard let bytes = try WholeFile.read(path, bytesMax: limit) else { return nil }
            guard let copy = FetchedCopy(bytes, title: Self.title), copy.url == address.url,
                let keys = try? TokenKeySet(json: copy.text)
            else {
                context.log.warning("the copy \(path) can't be understood, and is replaced")
                return nil
            }
            state.withLock { state in
                state.keys = keys
                state.tag = copy.tag
                state.facts.keys = keys.count
                state.confirmedAt = copy.date
            }
            return max(context.wallSeconds - copy.date, 0)
        } catch {
            context.log.warning("the copy \(path): \(error.text)")
            return nil
        }
    }

    private func write(_ copy: FetchedCopy) {
        guard let path else { return }
        do throws(WholeFile.Fault) {
            try WholeFile.replace(path, by: copy.bytes)
        } catch {
            context.log.warning("\(error.text); a restart begins without the newest keys")
        }
    }
}
