import Expectations
import Foundation
import Glibc
import Testing

@testable import EventLoops

@Suite struct ListenerTests {
    /// Binding comes before root is given up and the store is opened; a client must not wait for a
    /// gateway that will not start.
    @Test func `what is bound turns clients away until it listens`() throws {
        let path = FileManager.default.temporaryDirectory
            .appending(path: "pc-\(UUID().uuidString.prefix(8)).sock").path
        defer { unlink(path) }
        let address = try #require(SocketAddress(unixPath: path))
        let descriptor = try Listener.bound(to: address)
        defer { close(descriptor) }
        let refused = #expect(throws: SocketError.self) { try Connection.open(to: address) }
        expectEqual(refused?.code, ECONNREFUSED)
        try Listener.listen(descriptor)
        close(try Connection.open(to: address).descriptor)
    }

    /// A process that binds without a look would take half of another one's clients.
    @Test(arguments: ["127.0.0.1", "0.0.0.0", "::1", "::"])
    func `an address that is bound is in use, before it listens and after`(host: String) throws {
        let any = try #require(SocketAddress(ip: host, port: 0))
        let first = try Listener.bound(to: any)
        defer { close(first) }
        let address = Listener.boundAddress(first)
        for isListening in [false, true] {
            if isListening { try Listener.listen(first) }
            let refused = #expect(throws: SocketError.self) { try Listener.bound(to: address) }
            expectEqual(refused?.code, EADDRINUSE)
            // The event loops of one process share it.
            close(try Listener.sibling(of: address))
        }
    }

    @Test func `an address is free again at once, whatever connections are left behind`() throws {
        // No other test binds this one, so its port stays free.
        let any = try #require(SocketAddress(ip: "127.9.8.7", port: 0))
        let first = try Listener.bound(to: any)
        let address = Listener.boundAddress(first)
        let second = try Listener.sibling(of: address)
        for descriptor in [first, second] { try Listener.listen(descriptor) }
        // The end that closes first keeps the port for a while (TIME_WAIT).
        let client = try Connection.open(to: address).descriptor
        defer { close(client) }
        var accepted: Int32 = -1
        while accepted < 0 {
            for descriptor in [first, second] where accepted < 0 {
                accepted = accept(descriptor, nil, nil)
            }
        }
        for descriptor in [accepted, first, second] { close(descriptor) }
        let next = try Listener.bound(to: address)
        defer { close(next) }
        try Listener.listen(next)
        let sibling = try Listener.sibling(of: address)
        defer { close(sibling) }
        try Listener.listen(sibling)
    }
}
