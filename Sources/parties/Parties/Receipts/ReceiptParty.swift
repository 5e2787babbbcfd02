import AppAttest
import DeviceKey
import Dispatch
import KeyStore
import Logging
import Services
import Synchronization

/// The renewal of receipts, where the store keeps any, and its log for operators. No line has a
/// whole key id or a receipt.
final class ReceiptParty: Party {
    private struct State {
        var settings: ReceiptRenewer.Settings
        /// `nil` until the store has shown that it keeps receipts.
        var renewer: ReceiptRenewer?
        var isEnded = false
    }

    private let apple: any AppleCalling
    private let context: PartyContext
    /// The queue on which the receipts are opened, which reads files.
    private let queue = DispatchQueue(label: "portcullis.receipts")
    private let state: Mutex<State>

    init(_ settings: PartySettings, over apple: any AppleCalling, _ context: PartyContext) {
        (self.apple, self.context) = (apple, context)
        state = Mutex(State(settings: ReceiptRenewer.Settings(settings)))
    }

    func start() { queue.async { [self] in open() } }

    private func open() {
        do throws(JournalError) {
            if let receipts = try context.decider.keys.receiptStore() { renew(receipts) }
        } catch {
            context.log.error("the receipts can't be read, so none are renewed: \(error)")
        }
    }

    private func renew(_ receipts: any ReceiptStore) {
        let parts = ReceiptRenewer.Parts(
            keys: context.decider.keys,
            receipts: receipts,
            apple: apple,
            clock: RenewalClock(now: context.wallClock)
        )
        let renewer = state.withLock { state -> ReceiptRenewer? in
            guard !state.isEnded else { return nil }
            state.renewer = ReceiptRenewer(state.settings, parts) { [log = context.log] notice in
                Self.tell(notice, in: log)
            }
            return state.renewer
        }
        renewer?.start()
    }

    func loaded(_ settings: PartySettings) {
        let settings = ReceiptRenewer.Settings(settings)
        let renewer = state.withLock { state in
            state.settings = settings
            return state.renewer
        }
        renewer?.reload(settings)
    }

    func end() {
        let renewer = state.withLock { state in
            state.isEnded = true
            return state.renewer
        }
        renewer?.end()
    }

    // MARK: For operators

    var facts: [any PartyFacts] {
        state.withLock(\.renewer).map { [$0.facts] } ?? []
    }

    private static func tell(_ notice: ReceiptRenewer.Notice, in log: Logger) {
        switch notice {
        case .paused(let environment, let seconds):
            log.warning(
                """
                receipts: none of \(environment.rawValue) are renewed for \(seconds) s, since \
                Apple does not answer them or refuses one after the other; next: see what is said \
                of Apple's receipts
                """
            )
        case .refused(let keyID, let refusal):
            log.warning(
                """
                receipts: what came for key \(keyID.logName) is refused, \(refusal); next: \
                \(refusal.reason.nextStep) The stored receipt stays
                """
            )
        case .rejected(let keyID, let status):
            log.warning(
                """
                receipts: Apple answered \(status) to the receipt of key \(keyID.logName), which \
                is left alone for a week; next: see whether apple.hosts and the key's environment \
                belong together
                """
            )
        case .unreadable(let error):
            log.error("receipts: the store can't be read, \(error); it is tried again")
        }
    }
}

extension ReceiptRenewer.Settings {
    /// The settings of a configuration. Without a key for Apple nothing is renewed.
    init(_ settings: PartySettings) {
        let apple = settings.apple
        var renewal = apple.receipts
        if apple.credentials.isEmpty { renewal.renews = false }
        self.init(
            renewal: renewal,
            apps: settings.apps,
            teams: AppleTeams(apple.credentials),
            timeout: apple.timeout
        )
    }
}
