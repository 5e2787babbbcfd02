import Foundation
import Glibc
import Synchronization

extension LoopbackKit {
    /// Ports that were given out: a program with one of them may not listen yet.
    private static let given = Mutex<Set<UInt16>>([])

    /// The first of the ports that the system chooses for connections and listeners.
    private static let firstOfSystem: UInt16? = {
        let file = "/proc/sys/net/ipv4/ip_local_port_range"
        let range = try? String(contentsOfFile: file, encoding: .utf8)
        return range?.split(whereSeparator: \.isWhitespace).first.flatMap { UInt16($0) }
    }()

    /// A port of 127.0.0.1 for a program that can't choose one by itself.
    ///
    /// No process uses it now, and the system chooses it for none: otherwise a connection of
    /// another test could take it before the program listens. Another run of the tests may still
    /// draw the same port.
    package static func freePort() throws -> UInt16 {
        for _ in 0..<1_000 {
            // 10000 stands in texts, in which ports are replaced by these.
            let port = UInt16.random(in: 10_001..<max(firstOfSystem ?? 0, 12_000))
            guard let socket = try? bound(port: port) else { continue }
            _ = close(socket)
            if given.withLock({ $0.insert(port).inserted }) { return port }
        }
        throw Failure("bind")
    }
}
