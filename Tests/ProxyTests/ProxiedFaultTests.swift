import EventLoops
import Expectations
import HTTPWire
import Testing

@testable import Proxy

struct ProxiedFaultTests {
    @Test func `of many failures one is told in ten seconds, with how many there were`() {
        var pace = ProxiedFault.Pace()
        let second: UInt64 = 1_000_000_000
        expectEqual(pace.count(now: 5 * second), 1)
        for tick in UInt64(0)..<100 { expectEqual(pace.count(now: 6 * second + tick), nil) }
        expectEqual(pace.count(now: 15 * second), 101)
        expectEqual(pace.count(now: 16 * second), nil)
    }

    @Test func `the log says who it was, and what was wrong`() {
        let peer = SocketAddress(.v4(0xC000_0201), port: 7)
        let fault = ProxiedFault(.stranger, peer, count: 1)
        expectEqual(fault.peerText, "192.0.2.1")
        expectEqual(fault.what, "it is none of trusted_proxies")
    }

    @Test(arguments: ["192.0.2.1", "2001:db8::7", "::1"])
    func `an address becomes a socket's and comes back`(_ text: String) throws {
        let address = try #require(IPAddress(text))
        let socket = SocketAddress(address, port: 51_234)
        expectEqual(socket.ipAddress, address)
        expectEqual(socket.port, 51_234)
    }
}
