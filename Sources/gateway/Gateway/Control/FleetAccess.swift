import ConfigurationReading
import KeyStore
import PostgreSQLKeyStore
import Services

/// A shared database as one of its gateways uses it.
struct FleetAccess: Sendable {
    let database: FleetDatabase
    /// This gateway's name.
    let name: String

    /// `nil` where a configuration's store is no shared database.
    init?(_ configuration: GatewayConfiguration) {
        guard case .postgresql(let settings) = configuration.store else { return nil }
        database = FleetDatabase(settings)
        name =
            settings.gateway.isEmpty
            ? GatewayName.ofMachine(SyslogLink.hostName) : settings.gateway
    }
}
