import ConfigurationReading
import Proxy
import TLSSession

/// What the files of a configuration have become: all that a reload replaces.
///
/// Made on a queue where waiting is allowed: it reads files and looks names up.
struct LoadedConfiguration: Sendable {
    let configuration: GatewayConfiguration
    let settings: ProxySettings
    let servers: ServerRegistry
    /// What the operator is told of it.
    let warnings: [Problem]
    let certificates: LoadedCertificates
    /// Their files, as they were before they were read.
    let stamps: CertificateWatch.Stamps
    /// Where the access log goes; `nil` for nowhere.
    let accessLog: LogWriter?

    /// Makes it from what was read, while `current` is served.
    ///
    /// - Throws: when something has changed that is taken at the start only, what is asked of this
    ///   machine is not there, or the access log can't be opened, in this order.
    init(
        _ next: GatewayConfiguration,
        replacing current: GatewayConfiguration,
        _ file: String,
        _ known: ServerRegistry,
        _ tls: TLSSurroundings,
        _ resolver: Resolver,
        _ devices: any DeviceChecking,
        _ registry: OriginRegistry,
        _ outputs: LogOutputs
    ) throws(GatewayError) {
        if let fixed = current.firstFixedDifference(from: next) {
            throw GatewayError(
                "\(fixed) has changed, which needs a restart",
                hint: current.isTakenByUpgrade(fixed, next)
                    ? "`portcullis upgrade --config \(file)` takes it without an interruption, or "
                        + "restart the gateway, or take the change back."
                    : "Restart the gateway, or take the change back."
            )
        }
        configuration = next
        stamps = LoadedCertificates.stamps(of: next)
        let preparation = try Preparation.complete(
            next,
            store: .open,
            tls: tls,
            file: file
        )
        servers = ServerRegistry(next, resolver, knowing: known.addresses)
        let contexts = preparation.certificates.origins
        settings = ProxySettings(next, servers, devices, contexts, registry)
        warnings = preparation.warnings + servers.problems(next)
        // The addresses stay, and so does the order of the listeners. What they show now is for
        // connections from now on.
        certificates = preparation.certificates
        accessLog = try outputs.accessLog(next.log.access)
    }
}

extension GatewayConfiguration {
    /// The first key that differs and is taken at the start only; `nil` when none does.
    func firstFixedDifference(from next: GatewayConfiguration) -> String? {
        // What a listener shows is read anew.
        if listeners.map(\.withoutTLS) != next.listeners.map(\.withoutTLS) { return "listen" }
        if admin != next.admin || adminCalls != next.adminCalls { return "admin" }
        if adminHosts != next.adminHosts { return "admin" }
        if (operatorToken == nil) != (next.operatorToken == nil) { return "admin" }
        if loops != next.loops { return "lanes" }
        if store != next.store { return "store" }
        if challenges != next.challenges { return "challenges" }
        if sessions != next.sessions { return "sessions" }
        if limits.addressesMax != next.limits.addressesMax { return "limits.addresses" }
        if process != next.process { return "process" }
        return nil
    }

    /// Whether a new process can take a change of this key over from one that runs.
    func isTakenByUpgrade(_ key: String, _ next: GatewayConfiguration) -> Bool {
        switch key {
        case "store", "process": return false
        case "lanes":
            // Each event loop has sockets, from which none would accept.
            return GatewayServer.count(next.loops) >= GatewayServer.count(loops)
        default: return true
        }
    }
}
