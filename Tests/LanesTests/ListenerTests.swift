import Foundation
import Glibc
import Testing

@testable import Lanes

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
        #expect(refused?.code == ECONNREFUSED)
        try Listener.listen(descriptor)
        close(try Connection.open(to: address).descriptor)
    }
}
