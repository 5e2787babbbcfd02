import ConfigurationReading
import EventLoops
import HTTPWire
import Proxy
import Rules
import Verification

/// The loaded files of a configuration: all that a reload replaces.
///
/// It reads files and looks up names, so it is made on a queue where waiting is allowed.
struct PreparedReload: Sendable {
    let configuration: GatewayConfiguration
    let settings: ProxySettings
    let servers: ServerRegistry
    let warnings: [Problem]
    let certificates: LoadedCertificates
    /// The stamps of the certificates' files, from before they were read.
    let stamps: CertificateWatch.Stamps
    /// The writer of the access log; `nil` for no log.
    let accessLog: LogWriter?

    /// What the gateway has, and keeps, at a reload.
    struct Basis: Sendable {
        /// The configuration's file.
        let file: String
        let known: ServerRegistry
        let tls: TLSSurroundings
        let resolver: Resolver
        let calls: OutsideCalls
        let registry: OriginRegistry
        let outputs: LogOutputs
    }

    /// Makes it from the read files, while `current` is served.
    ///
    /// - Throws: when a setting has changed that is read only at the start, when this machine lacks
    ///   a requirement, or when the access log can't be opened, in this order.
    init(
        _ next: GatewayConfiguration,
        replacing current: GatewayConfiguration,
        with basis: Basis
    ) throws(GatewayError) {
        let changes = current.changes(to: next).filter { $0.needs > .reload }
        guard changes.isEmpty else {
            throw GatewayError(
                changes.map(\.text).joined(separator: "; "),
                hint: changes.allSatisfy { current.isTakenByUpgrade($0, next) }
                    ? "`portcullis upgrade --config \(basis.file)` takes it without an "
                        + "interruption, or restart the gateway, or take the change back."
                    : "Restart the gateway, or take the change back."
            )
        }
        configuration = next
        stamps = LoadedCertificates.stamps(of: next)
        let preparation = try Preparation.complete(
            next,
            store: .open,
            tls: basis.tls,
            file: basis.file
        )
        // Before the settings: these begin to fetch keys, which only an accepted reload ends.
        accessLog = try basis.outputs.accessLog(next.log.access)
        servers = ServerRegistry(next, basis.resolver, knowing: basis.known.addresses)
        settings = ProxySettings(
            next,
            servers,
            calls: basis.calls,
            certificates: preparation.certificates.origins,
            registry: basis.registry
        )
        warnings = preparation.warnings + servers.problems(next)
        // The addresses and the order of the listeners stay. The new certificates are for
        // connections from now on.
        certificates = preparation.certificates
    }
}

extension GatewayConfiguration {
    /// Whether a new process can take over a change from a running one.
    fileprivate func isTakenByUpgrade(_ change: SettingChange, _ next: Self) -> Bool {
        guard change.needs < .restart else { return false }
        // Each event loop has sockets. Without the loop, no connection on them would be accepted.
        return change.keyPath != "event_loops"
            || next.loops.onThisMachine >= settings.loops.onThisMachine
    }
}
