import CLinux
import Glibc
import LoopbackKit

/// What the kernel holds of a connection of the gateway's, which runs in this process.
enum SendQueue {
    private static let descriptorsMax: Int32 = 65_536

    /// Bytes that the end at `port` has sent or is to send and the other has not acknowledged.
    static func bytes(from port: UInt16, to peer: UInt16) throws -> Int {
        for descriptor in 3..<descriptorsMax
        where LoopbackKit.port(of: descriptor, getpeername) == peer
            && LoopbackKit.port(of: descriptor, getsockname) == port
        {
            return Int(clinux_unacknowledged(descriptor))
        }
        throw WireFault.failed("no connection from \(port) to \(peer)", 0)
    }
}
