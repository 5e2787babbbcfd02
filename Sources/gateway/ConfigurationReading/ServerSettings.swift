/// One server of an origin, as the configuration has it.
package struct ServerSettings: Hashable, Sendable {
    package let address: ServerAddress
    /// `weight`: its share of the requests. Default 1.
    package var weight = 1
    /// `backup`: it gets requests only while no other server is up. Default false.
    package var isBackup = false

    /// `max_connections`: the most connections to it at a time, of all lanes, with the idle ones.
    /// Default 0, for no limit. Others: nginx's `max_conns`, HAProxy's `maxconn`.
    package var connectionsMax = 0

    /// As `check` prints it.
    var text: String {
        let weight = weight == 1 ? "" : " weight \(weight)"
        let most = connectionsMax == 0 ? "" : " max_connections \(connectionsMax)"
        return address.text + weight + most + (isBackup ? " backup" : "")
    }

    static let weights = 1...1000
    static let connections = 0...1_000_000
}
