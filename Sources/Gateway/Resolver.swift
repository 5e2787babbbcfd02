import Configuration
import HTTPWire
import Transport

/// Addresses of what a configuration names. Names are resolved at start and reload.
enum Resolver {
    static func addresses(of server: ServerAddress) -> [SocketAddress] {
        switch server {
        case .ip(let address, let port):
            SocketAddress(ip: address.text, port: port).map { [$0] } ?? []
        case .name(let name, let port): SocketAddress.resolve(name, port: port)
        case .unix(let path): SocketAddress(unixPath: path).map { [$0] } ?? []
        }
    }
}
