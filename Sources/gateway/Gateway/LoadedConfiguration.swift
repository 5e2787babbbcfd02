import ConfigurationReading
import Origins
import Proxy
import TLSSession

/// What the files of a configuration have become: all that a reload replaces.
///
/// Made on a queue where waiting is allowed: it reads files and looks names up.
struct LoadedConfiguration: Sendable {
    let configuration: GatewayConfiguration
    let settings: ProxySettings
    let servers: ServerBook
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
        _ known: ServerBook,
        _ tls: TLSSurroundings,
        _ resolver: Resolver,
        _ devices: any DeviceChecking,
        _ book: OriginBook,
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
        servers = ServerBook(next, resolver, knowing: known.addresses)
        let contexts = preparation.certificates.origins
        settings = ProxySettings(next, servers, devices, contexts, book)
        warnings = preparation.warnings + servers.problems(next)
        // The addresses stay, and so does the order of the listeners. What they show now is for
        // connections from now on.
        certificates = preparation.certificates
        accessLog = try outputs.accessLog(next.log.access)
    }
}
