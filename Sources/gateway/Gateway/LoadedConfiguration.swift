import ConfigurationReading
import Proxy
import TLSSession

/// What the files of a configuration have become: all that a reload replaces.
///
/// Made on a queue where waiting is allowed: it reads files and looks names up.
struct LoadedConfiguration: Sendable {
    let configuration: GatewayConfiguration
    let settings: ProxySettings
    /// The certificate of each listener, in their order; `nil` for a plain one.
    let certificates: [TLSContext?]
    /// Where the access log goes; `nil` for nowhere.
    let accessLog: LogWriter?

    /// Makes it from what was read, while `current` is served.
    ///
    /// - Throws: when something has changed that is taken at the start only, a name has no address,
    ///   a certificate can't be loaded, or the access log can't be opened, in this order.
    init(
        _ next: GatewayConfiguration,
        replacing current: GatewayConfiguration,
        _ resolver: Resolver,
        _ outputs: LogOutputs
    ) throws(GatewayError) {
        if let fixed = current.firstFixedDifference(from: next) {
            throw GatewayError(
                "\(fixed) has changed, which needs a restart",
                hint: "Restart the gateway, or take the change back."
            )
        }
        configuration = next
        settings = try ProxySettings(next, resolver)
        // The addresses stay; a renewed certificate is for connections from now on.
        var certificates: [TLSContext?] = []
        for listener in next.listeners {
            certificates.append(try ListenerSet.context(listener.tls))
        }
        self.certificates = certificates
        accessLog = try outputs.accessLog(next.log.access)
    }
}
