import Foundation
import Glibc
import LoopbackKit

/// A connected stream socket with blocking calls, each of which ends after
/// ``ChildProcess/patience``.
final class Socket {
    struct Failure: Error, CustomStringConvertible {
        let description: String
        let code: Int32

        init(_ what: String, _ code: Int32 = errno) {
            self.code = code
            description = "\(what): \(String(cString: strerror(code)))"
        }
    }

    private(set) var descriptor: Int32

    init(descriptor: Int32) {
        self.descriptor = descriptor
        var time = timeval(tv_sec: Int(ChildProcess.patience), tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, size)
        var one: Int32 = 1
        // A Unix socket has no such option, and needs none.
        setsockopt(descriptor, 6, TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Connects to a port of this machine, from 127.0.0.`host`.
    convenience init(port: UInt16, from host: UInt8 = 1) throws {
        let source = host == 1 ? nil : host
        self.init(descriptor: try LoopbackKit.connected(port: port, from: source))
    }

    /// Connects to a socket file.
    convenience init(path: String) throws {
        self.init(descriptor: try LoopbackKit.connected(path: path))
    }

    deinit { close() }

    /// Closes now, and not with the object.
    func close() {
        guard descriptor >= 0 else { return }
        Glibc.close(descriptor)
        descriptor = -1
    }

    /// Sends all bytes.
    ///
    /// - Throws: when the other side has closed, or takes nothing for too long.
    func send(_ octets: [UInt8]) throws {
        var sent = 0
        while sent < octets.count {
            let count = octets.withUnsafeBytes {
                Glibc.send(
                    descriptor,
                    $0.baseAddress.map { $0 + sent },
                    octets.count - sent,
                    Int32(MSG_NOSIGNAL)
                )
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Failure("send") }
            sent += count
        }
    }

    /// Sends these bytes again and again until none is taken for 200 ms.
    func sendUntilStalled(_ octets: [UInt8]) throws {
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        while poll(&entry, 1, 200) > 0 {
            let count = octets.withUnsafeBytes {
                Glibc.send(
                    descriptor,
                    $0.baseAddress,
                    $0.count,
                    Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
                )
            }
            guard count > 0 || errno == EAGAIN || errno == EINTR else { throw Failure("send") }
        }
    }

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    /// The next bytes; empty at the end.
    func receive() throws -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = buffer.withUnsafeMutableBytes {
                recv(descriptor, $0.baseAddress, $0.count, 0)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure("receive") }
            return Array(buffer[..<count])
        }
    }

    /// The end of this object will be a reset.
    func resetsAtEnd() {
        var now = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
    }

    /// Waits, without reading, until the other side has gone.
    func awaitHangup() {
        // POLLRDHUP (Linux, poll(2)); a reset and the end of both directions are told unasked.
        var entry = pollfd(fd: descriptor, events: 0x2000, revents: 0)
        poll(&entry, 1, Int32(ChildProcess.patience * 1_000))
    }

    /// Says that nothing more will be sent.
    func endOutput() { shutdown(descriptor, Int32(SHUT_WR)) }
}
