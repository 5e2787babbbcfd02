import Glibc

/// An address to listen on or connect to: an IPv4 or IPv6 address with a port, or a Unix socket's
/// path.
package struct SocketAddress: Sendable {
    /// The kernel's form.
    var storage = sockaddr_storage()
    var length: socklen_t = 0

    /// An empty address, for calls that fill it in.
    init() {}

    /// A Unix socket; `nil` when the path is empty or longer than the 107 bytes that the kernel
    /// accepts.
    package init?(unixPath: String) {
        var address = sockaddr_un()
        let path = Array(unixPath.utf8)
        guard !path.isEmpty, path.count < MemoryLayout.size(ofValue: address.sun_path) else {
            return nil
        }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        store(address)
    }

    /// A Unix socket without a file, by its name (unix(7)); `nil` when the name is empty or longer
    /// than the 107 bytes that the kernel accepts.
    package init?(abstractName: String) {
        var address = sockaddr_un()
        let name = Array(abstractName.utf8)
        guard !name.isEmpty, name.count < MemoryLayout.size(ofValue: address.sun_path) else {
            return nil
        }
        address.sun_family = sa_family_t(AF_UNIX)
        // A zero byte, then the name, to the end of the address.
        withUnsafeMutableBytes(of: &address.sun_path) {
            $0[1...name.count].copyBytes(from: name)
        }
        store(address)
        length = socklen_t(MemoryLayout<sa_family_t>.size + 1 + name.count)
    }

    /// A numeric IPv4 or IPv6 address, without brackets; `nil` when it is neither.
    package init?(ip: String, port: UInt16) {
        var four = sockaddr_in()
        var six = sockaddr_in6()
        if inet_pton(AF_INET, ip, &four.sin_addr) == 1 {
            four.sin_family = sa_family_t(AF_INET)
            four.sin_port = port.bigEndian
            store(four)
        } else if inet_pton(AF_INET6, ip, &six.sin6_addr) == 1 {
            six.sin6_family = sa_family_t(AF_INET6)
            six.sin6_port = port.bigEndian
            store(six)
        } else {
            return nil
        }
    }

    /// An IPv4 address, its first number in the highest byte.
    package init(v4 address: UInt32, port: UInt16) {
        var four = sockaddr_in()
        four.sin_family = sa_family_t(AF_INET)
        four.sin_port = port.bigEndian
        four.sin_addr.s_addr = address.bigEndian
        store(four)
    }

    /// An IPv6 address, its first group in the highest bits.
    package init(v6 high: UInt64, _ low: UInt64, port: UInt16) {
        var six = sockaddr_in6()
        six.sin6_family = sa_family_t(AF_INET6)
        six.sin6_port = port.bigEndian
        withUnsafeMutableBytes(of: &six.sin6_addr) {
            // in6_addr is 16 bytes.
            $0.storeBytes(of: high.bigEndian, as: UInt64.self)
            $0.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
        }
        store(six)
    }

    /// The addresses of a name, by the system's resolver. Blocks; for the start only.
    package static func resolve(_ name: String, port: UInt16) -> [SocketAddress] {
        if let address = SocketAddress(ip: name, port: port) { return [address] }
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(name, String(port), &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        var found: [SocketAddress] = []
        var next = list
        while let entry = next {
            var address = SocketAddress()
            if let from = entry.pointee.ai_addr,
                entry.pointee.ai_addrlen <= MemoryLayout<sockaddr_storage>.size
            {
                // The resolver's record is valid until freeaddrinfo; its length was checked above.
                withUnsafeMutableBytes(of: &address.storage) {
                    $0.copyMemory(
                        from: UnsafeRawBufferPointer(
                            start: from,
                            count: Int(entry.pointee.ai_addrlen)
                        )
                    )
                }
                address.length = entry.pointee.ai_addrlen
                found.append(address)
            }
            next = entry.pointee.ai_next
        }
        return found
    }

    private mutating func store<Address>(_ address: Address) {
        // Every kernel address is a plain record no larger than sockaddr_storage.
        withUnsafeBytes(of: address) { bytes in
            withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: bytes) }
        }
        length = socklen_t(MemoryLayout<Address>.size)
    }

    /// AF_INET, AF_INET6 or AF_UNIX.
    var family: Int32 { Int32(storage.ss_family) }

    package var isUnix: Bool { family == AF_UNIX }

    /// The port of an IP address.
    package var port: UInt16? {
        switch family {
        case AF_INET: UInt16(bigEndian: load(as: sockaddr_in.self).sin_port)
        case AF_INET6: UInt16(bigEndian: load(as: sockaddr_in6.self).sin6_port)
        default: nil
        }
    }

    /// The IPv4 address, its first byte the highest; `nil` for any other.
    package var v4: UInt32? {
        family == AF_INET ? UInt32(bigEndian: load(as: sockaddr_in.self).sin_addr.s_addr) : nil
    }

    /// The IPv6 address, its first byte the highest; `nil` for any other.
    package var v6: (high: UInt64, low: UInt64)? {
        guard family == AF_INET6 else { return nil }
        // An address of IPv6 has 16 bytes.
        return withUnsafeBytes(of: load(as: sockaddr_in6.self).sin6_addr) {
            (
                UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)),
                UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
    }

    /// The IP address's bytes, 4 or 16; an IPv4 address mapped into IPv6 gives its 4. Empty for a
    /// Unix socket.
    package var bytes: [UInt8] {
        switch family {
        case AF_INET: return withUnsafeBytes(of: load(as: sockaddr_in.self).sin_addr) { Array($0) }
        case AF_INET6:
            let bytes = withUnsafeBytes(of: load(as: sockaddr_in6.self).sin6_addr) { Array($0) }
            let isMapped =
                bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 255 && bytes[11] == 255
            return isMapped ? Array(bytes[12...]) : bytes
        default: return []
        }
    }

    /// The path of a Unix socket that has one.
    package var unixPath: String? {
        guard isUnix, Int(length) > MemoryLayout<sa_family_t>.size else { return nil }
        let path = withUnsafeBytes(of: load(as: sockaddr_un.self).sun_path) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        return path.isEmpty ? nil : path
    }

    /// The configuration's form; `nil` for a Unix socket without a path.
    package var text: String? {
        guard let port else { return unixPath.map { "unix:" + $0 } }
        var name = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let status = withKernelForm {
            getnameinfo($0, $1, &name, socklen_t(name.count), nil, 0, NI_NUMERICHOST)
        }
        guard status == 0 else { return nil }
        let host = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
        return family == AF_INET6 ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// Whether both are the same listening address.
    package func isSame(as other: SocketAddress) -> Bool {
        guard family == other.family else { return false }
        return isUnix
            ? unixPath != nil && unixPath == other.unixPath
            : port == other.port && bytes == other.bytes
    }

    private func load<Address>(as type: Address.Type) -> Address {
        // The family says which record the storage holds, and the storage is larger than any.
        withUnsafeBytes(of: storage) { $0.loadUnaligned(as: type) }
    }

    /// Calls the closure with the kernel's form.
    func withKernelForm<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        withUnsafeBytes(of: storage) { bytes in
            // sockaddr_storage is aligned for every sockaddr and not empty.
            bytes.withMemoryRebound(to: sockaddr.self) { records in
                guard let base = records.baseAddress else {
                    preconditionFailure("Transport: no address")
                }
                return body(base, length)
            }
        }
    }
}

extension SocketAddress {
    /// The time between two probes: no event tells that a process listens. Blocks.
    package static func pause(milliseconds: Int32) { _ = poll(nil, 0, milliseconds) }

    /// Whether a process accepts connections at this address now: it makes a connection and closes
    /// it.
    ///
    /// Blocks for at most this time; for tools, never on an event loop.
    package func takesConnections(within milliseconds: Int32) -> Bool {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(Int32(storage.ss_family), type, 0)
        guard descriptor >= 0 else { return false }
        defer { _ = Glibc.close(descriptor) }
        if withKernelForm({ connect(descriptor, $0, $1) }) == 0 { return true }
        guard errno == EINPROGRESS else { return false }
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        guard poll(&entry, 1, milliseconds) == 1 else { return false }
        var error: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0
    }
}

/// A system call on a socket that failed.
public struct SocketError: Error, Equatable, CustomStringConvertible {
    /// The call, as in its manual page.
    public let call: String
    /// The value of errno.
    public let code: Int32

    /// Takes errno from the failed call.
    package init(_ call: String, code: Int32 = errno) {
        self.call = call
        self.code = code
    }

    /// A peer that did not answer a connect in time.
    package static let connectTimedOut = SocketError("connect", code: ETIMEDOUT)

    /// A peer with which a TLS handshake failed.
    package static let handshakeFailed = SocketError("handshake", code: EPROTO)

    /// A peer that does not speak HTTP/2.
    package static let noHTTP2 = SocketError("http2", code: EPROTO)

    /// A peer that speaks HTTP/2 and takes no request on the connection.
    package static let goneAway = SocketError("http2", code: ECONNREFUSED)

    /// A peer with no free stream on any connection.
    package static let noStream = SocketError("stream", code: EAGAIN)

    /// Whether the peer did not answer in time.
    package var isTimeout: Bool { code == ETIMEDOUT }

    /// Whether this process or machine had no descriptor, memory or watch left, which is not the
    /// peer's fault. ENOSPC is epoll_ctl's, at `fs.epoll.max_user_watches`.
    package var isShortage: Bool { [EMFILE, ENFILE, ENOBUFS, ENOMEM, ENOSPC].contains(code) }

    /// The call and the system's words for the error.
    public var description: String { "\(call): \(String(cString: strerror(code)))" }
}

/// Sends datagrams to one address: a Unix socket, or a port of UDP.
package final class DatagramSender: Sendable {
    /// The time that a message waits for a slow reader: seconds.
    private static let patienceSeconds = 1

    private let descriptor: Int32
    private let address: SocketAddress

    /// - Throws: `SocketError` of socket.
    package init(to address: SocketAddress) throws(SocketError) {
        let type = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
        descriptor = Glibc.socket(address.family, type, 0)
        guard descriptor >= 0 else { throw SocketError("socket") }
        self.address = address
        var time = timeval(tv_sec: Self.patienceSeconds, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, size)
    }

    deinit { close(descriptor) }

    /// Sends bytes as one datagram; `false` when they are lost. It looks up the address each time,
    /// so that a restarted reader gets the next one.
    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool {
        address.withKernelForm { name, length in
            sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), name, length)
        } == bytes.count
    }
}
