package import Glibc

/// The sockets of which the scenarios' clients and origins are made: on this host, on ports that
/// the kernel chooses, inherited by no program that another test starts.
package enum LoopbackKit {
    /// The call that failed, and its error.
    package struct Failure: Error, CustomStringConvertible {
        package let call: String
        package let code: Int32

        package init(_ call: String) { (self.call, code) = (call, errno) }

        package var description: String { "\(call): \(String(cString: strerror(code)))" }
    }

    /// The type of a stream socket.
    package static let stream = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)

    /// The most clients that wait to be accepted.
    private static let backlog: Int32 = 512

    /// A port of 127.0.0.`host`; 0 for one that the system chooses.
    package static func address(_ host: UInt8 = 1, port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = (0x7F00_0000 | UInt32(host)).bigEndian
        return address
    }

    /// The address of a socket in the file system.
    package static func address(path: String) -> sockaddr_un {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { target in
            target.copyBytes(from: path.utf8.prefix(target.count - 1))
        }
        return address
    }

    /// Calls `bind` or `connect`.
    package static func call<Address>(
        _ function: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32,
        _ descriptor: Int32,
        _ address: Address
    ) -> Int32 {
        // The pointer lives for the call, and the address is as long as its type.
        withUnsafeBytes(of: address) { bytes in
            function(
                descriptor,
                bytes.assumingMemoryBound(to: sockaddr.self).baseAddress,
                socklen_t(bytes.count)
            )
        }
    }

    /// The port of one end of a TCP connection, as `getsockname` or `getpeername` says; 0 when
    /// there is none.
    package static func port(
        of descriptor: Int32,
        _ name: (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32
    ) -> UInt16 {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        // The pointer lives for the call, and the address is as long as its type.
        let status = withUnsafeMutableBytes(of: &address) {
            name(descriptor, $0.assumingMemoryBound(to: sockaddr.self).baseAddress, &length)
        }
        guard status == 0, address.ss_family == AF_INET else { return 0 }
        return withUnsafeBytes(of: address) {
            UInt16(bigEndian: $0.load(fromByteOffset: 2, as: UInt16.self))
        }
    }

    /// Connects to a port of this host, from 127.0.0.`host` where that is given. Only then is it
    /// bound: a port that was bound is not free as long as any connection of it lingers.
    package static func connected(port: UInt16, from host: UInt8? = nil) throws -> Int32 {
        try open(AF_INET) { descriptor in
            if let host, call(bind, descriptor, address(host, port: 0)) != 0 { return "bind" }
            return call(connect, descriptor, address(port: port)) == 0 ? nil : "connect"
        }
    }

    /// Connects to a socket file.
    package static func connected(path: String) throws -> Int32 {
        try open(AF_UNIX) { descriptor in
            call(connect, descriptor, address(path: path)) == 0 ? nil : "connect"
        }
    }

    /// Listens on a port that the system chooses.
    package static func listening() throws -> (descriptor: Int32, port: UInt16) {
        try listening(backlog: backlog)
    }

    static func listening(backlog: Int32) throws -> (descriptor: Int32, port: UInt16) {
        let descriptor = try bound()
        guard listen(descriptor, backlog) == 0 else { throw Failure("listen") }
        return (descriptor, port(of: descriptor, getsockname))
    }

    /// Listens on a socket file.
    package static func listening(path: String) throws -> Int32 {
        try open(AF_UNIX) { descriptor in
            guard call(bind, descriptor, address(path: path)) == 0 else { return "bind" }
            return listen(descriptor, backlog) == 0 ? nil : "listen"
        }
    }

    /// A socket that has a port and does not listen there; 0 for one that the system chooses.
    package static func bound(port: UInt16 = 0) throws -> Int32 {
        try open(AF_INET) { descriptor in
            call(bind, descriptor, address(port: port)) == 0 ? nil : "bind"
        }
    }

    /// A socket, closed again when a call fails, of which the closure returns the name.
    private static func open(_ family: Int32, _ body: (Int32) -> String?) throws -> Int32 {
        let descriptor = socket(family, stream, 0)
        guard descriptor >= 0 else { throw Failure("socket") }
        guard let call = body(descriptor) else { return descriptor }
        let failure = Failure(call)
        _ = close(descriptor)
        throw failure
    }
}
