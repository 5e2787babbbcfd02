import ConfigurationReading
import Dispatch
import KeyCatalog
import Logging

// `store.expire_unused`: once at the start, then once a day, as the configuration says then.
extension GatewayServer {
    func startExpiring() {
        control.async { [self] in expireKeys() }
    }

    private func expireKeys() {
        dispatchPrecondition(condition: .onQueue(control))
        guard !isEnding else { return }
        control.asyncAfter(deadline: .now() + KeyExpiry.interval) { [self] in expireKeys() }
        guard let age = configuration.expireUnused else { return }
        let note = ChangeNote(now: wallSeconds, by: "portcullis", why: "store.expire_unused")
        expiry.run(configuration.store, before: note.now - age.seconds, note) { [self] result in
            control.async { self.tell(expired: result, age) }
        }
    }

    private func tell(expired result: Result<Int, StoreProblem>, _ age: KeyAge) {
        switch result {
        case .success(0): break
        case .success(let count):
            log.notice(
                "keys deleted that were not used for \(age.seconds / 86_400) days: \(count)"
            )
        case .failure(let problem):
            log.error("unused keys could not be deleted, \(problem); it is tried again in a day")
        }
    }
}
