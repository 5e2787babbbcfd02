import ConfigurationReading
import Dispatch
import Glibc
import KeyStore
import Logging
package import Services

// Another process takes over; this one finishes what it has.
extension GatewayServer {
    /// How far an upgrade has come.
    enum Upgrading {
        /// Leaves to `running`.
        case none
        /// Another process starts. Leaves to `none`, `handedOver`.
        case running
        /// Another process serves, and decides for this one, which drains.
        case handedOver
    }

    /// How long the process lives after it has handed over, at the least.
    static let answerTime = Duration.milliseconds(500)

    private func obstacle() -> String? {
        if isEnding { return "the gateway ends" }
        switch upgrading {
        case .none: break
        case .running: return "an upgrade is being made already"
        case .handedOver: return "this process has handed over already"
        }
        guard case .none = reloading else { return "a reload is being made; try again" }
        guard surroundings.ownsProcess else { return "the gateway is a part of another program" }
        // The first process of a container ends with it, whatever others there are.
        if getpid() == 1 { return "this is a container's first process; replace the container" }
        return nil
    }

    private func refuse(_ why: String, _ done: @Sendable (UpgradeReport) -> Void) {
        log.error("upgrade: refused, and nothing has changed: \(why)")
        done(.refused(why))
    }

    /// The process that decides does not answer, or answers again.
    func successorChanged(_ isHung: Bool) {
        control.async { [self] in
            if isHung {
                log.error(
                    """
                    upgrade: the process that serves now does not answer this one, which drains: \
                    what is verified here is answered 503 until it does; next: look whether that \
                    process hangs, and restart the service if it does
                    """
                )
            } else {
                log.notice("upgrade: the process that serves now answers again")
            }
        }
    }

    private func upgradeEnded(
        _ result: Result<Upgrade.Done, UpgradeRefusal>,
        _ done: @Sendable (UpgradeReport) -> Void
    ) {
        switch result {
        case .failure(let refusal):
            upgrading = .none
            tell(.ready, status: servingStatus)
            refuse(refusal.text, done)
        case .success(let success):
            upgrading = .handedOver
            let microseconds = success.pause / 1_000
            log.notice(
                """
                upgrade: process \(success.process) serves from now on; accepting paused for \
                \(microseconds / 1_000).\(String(microseconds % 1_000 + 1_000).dropFirst()) ms
                """
            )
            done(.done(process: success.process, pauseMicroseconds: microseconds))
            renewer?.end()
            keys.leaveStore()
            drain()
        }
    }
}

extension GatewayServer: Handing {
    package func upgrade(_ done: @escaping @Sendable (UpgradeReport) -> Void) {
        control.async { [self] in
            if let why = obstacle() { return refuse(why, done) }
            upgrading = .running
            log.notice("upgrade: starting the program anew")
            let upgrade = Upgrade(server: self, store: configuration.store.name)
            DispatchQueue(label: "portcullis.upgrade").async { [self] in
                let result = Result { () throws(UpgradeRefusal) in try upgrade.run() }
                control.async { self.upgradeEnded(result, done) }
            }
        }
    }
}
