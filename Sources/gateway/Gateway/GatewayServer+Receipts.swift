import AppAttest
import AppleServices
import ConfigurationReading
import Dispatch
import KeyStore
import Logging
import Services

// The renewal of receipts. No line of the log has a receipt or a whole key id.
extension GatewayServer {
    /// Begins to renew, where the store keeps receipts.
    ///
    /// - `clock`: milliseconds since 1970.
    func startRenewing(_ clock: @escaping @Sendable () -> Int64) {
        // This opens files.
        loading.async { [self] in
            let opened = Result { () throws(JournalError) in try keys.receiptShelf() }
            control.async { self.renew(opened, clock) }
        }
    }

    private func renew(
        _ opened: Result<(any ReceiptShelf)?, JournalError>,
        _ clock: @escaping @Sendable () -> Int64
    ) {
        dispatchPrecondition(condition: .onQueue(control))
        guard !isDraining else { return }
        let shelf: any ReceiptShelf
        switch opened {
        case .failure(let error):
            return log.error("the receipts can't be read, so none are renewed: \(error)")
        case .success(nil): return
        case .success(let some?): shelf = some
        }
        let renewer = ReceiptRenewer(
            ReceiptRenewer.Settings(configuration),
            keys: keys,
            shelf: shelf,
            apple: apple,
            clock: RenewalClock(now: clock)
        ) { [self] notice in
            control.async { self.tell(notice) }
        }
        self.renewer = renewer
        renewer.start()
    }

    private func tell(_ notice: ReceiptRenewer.Notice) {
        let next: String
        switch notice {
        case .paused(let environment, let seconds):
            log.warning(
                """
                receipts: none of \(environment.rawValue) are renewed for \(seconds) s, since \
                Apple does not answer them or refuses one after the other; next: see what is said \
                of Apple's receipts
                """
            )
            return
        case .refused(let keyID, let refusal):
            next = "\(refusal.reason.nextStep) The stored receipt stays"
            log.warning(
                "receipts: what came for key \(keyID.logName) is refused, \(refusal); next: \(next)"
            )
        case .rejected(let keyID, let status):
            next = "see whether apple.hosts and the key's environment belong together"
            log.warning(
                """
                receipts: Apple answered \(status) to the receipt of key \(keyID.logName), which \
                is left alone for a week; next: \(next)
                """
            )
        case .unreadable(let error):
            log.error("receipts: the store can't be read, \(error); it is tried again")
        }
    }
}

extension ReceiptRenewer.Settings {
    /// What a configuration asks. Without a key for Apple nothing is renewed.
    init(_ configuration: GatewayConfiguration) {
        var renewal = configuration.apple.receipts
        if configuration.apple.credentials.isEmpty { renewal.renews = false }
        self.init(
            renewal: renewal,
            apps: configuration.apps,
            teams: AppleTeams(configuration.apple.credentials),
            timeout: configuration.apple.timeout
        )
    }
}
