/// One server of an origin, as the configuration has it.
package struct ServerSettings: Hashable, Sendable {
    package let address: ServerAddress
    /// `weight`: its share of the requests. Default 1.
    package var weight = 1
    /// `backup`: it gets requests only while no other server is up. Default false.
    package var isBackup = false

    /// As `check` prints it.
    var text: String {
        let weight = weight == 1 ? "" : " weight \(weight)"
        return address.text + weight + (isBackup ? " backup" : "")
    }

    static let weights = 1...1000
}
