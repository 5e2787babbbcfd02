import ConfigurationReading
import Dispatch
import Expectations
import Glibc
import KeyStore
import LoopbackKit
import Synchronization
import Testing

@testable import PostgreSQLKeyStore

/// Several servers in one address: which of them is tried, and for how long.
@Suite struct ServerChoiceTests {
    private func servers(
        _ address: String,
        _ names: [String: [String]] = [:]
    ) throws -> [String] {
        let all = try DatabaseServers(address) { (name) throws(DatabaseFault) in
            guard let found = names[name] else { throw .unreachable("\(name)?", state: nil) }
            return found
        }
        return all.servers.map { server in
            server.settings.map { "\($0.name)=\($0.value)" }.joined(separator: " ")
        }
    }

    @Test func `each address of each server is tried by itself`() throws {
        let two = ["db1": ["192.0.2.1", "2001:db8::1"], "db2": ["192.0.2.2"]]
        try expectEqual(
            servers("host=db1,db2 port=5433 target_session_attrs=any", two),
            [
                "host=db1 port=5433 hostaddr=192.0.2.1",
                "host=db1 port=5433 hostaddr=2001:db8::1",
                "host=db2 port=5433 hostaddr=192.0.2.2",
            ]
        )
        let write = "target_session_attrs=read-write"
        try expectEqual(
            servers("postgresql://db1:1,db3,db2/x", two),
            [
                "host=db1 port=1 hostaddr=192.0.2.1 \(write)",
                "host=db1 port=1 hostaddr=2001:db8::1 \(write)",
                "host=db2 port=5432 hostaddr=192.0.2.2 \(write)",
            ]
        )
        try expectEqual(servers("host=/run"), ["host=/run hostaddr="])
        try expectEqual(servers("host=a hostaddr=192.0.2.7"), ["host=a hostaddr=192.0.2.7"])
        try expectEqual(servers("service=fleet"), [""])
        #expect(throws: DatabaseFault.self) { try servers("host=db4") }
        #expect(throws: DatabaseFault.self) { try servers("host='db4") }
        let many = (1...40).map { "10.0.0.\($0)" }
        try expectEqual(servers("host=db1", ["db1": many]).count, 16)
    }

    @Test func `a server that accepts and is silent leaves time for the next one`() throws {
        let server = try DatabaseServer.shared.get()
        let silent = try SilentServer()
        let address = server.address(schema: "public").replacing(
            "host=\(server.folder)",
            with: "host=127.0.0.1,\(server.folder) port=\(silent.port),5432 sslmode=disable"
        )
        let connection = try DatabaseConnection.open(address, until: .now + .seconds(4))
        try expectEqual(
            connection.run([DatabaseStatement("SELECT 1")], until: .now + .seconds(5)).count,
            1
        )
        // All of them silent: no longer than there is time.
        let start = ContinuousClock.now
        let fault = #expect(throws: DatabaseFault.self) {
            try DatabaseConnection.open(
                "host=127.0.0.1,127.0.0.1 port=\(silent.port) sslmode=disable",
                until: start + .seconds(3)
            )
        }
        #expect(ContinuousClock.now - start < .seconds(10))
        expectEqual(
            fault?.journalError.detail.contains("127.0.0.1 gave no connection in time"),
            true
        )
    }

    @Test func `of several servers the one that takes writes is used`() throws {
        let server = try DatabaseServer.shared.get()
        // The same server twice; the first connection is told to be a standby's.
        let reading = server.address(schema: "public") + " target_session_attrs=read-only"
        let fault = #expect(throws: DatabaseFault.self) {
            try DatabaseConnection.open(reading, until: .now + .seconds(5))
        }
        expectEqual(fault?.journalError.next?.contains("among them"), true)
    }

    @Test func `a resolver that hangs keeps nobody longer than there is time`() throws {
        let server = try DatabaseServer.shared.get()
        let (asked, release) = (Count(), DispatchSemaphore(value: 0))
        let names = NameLookUp { _ in
            asked.value.add(1, ordering: .relaxed)
            release.wait()
            return ["127.0.0.1"]
        }
        let start = ContinuousClock.now
        for _ in 0..<3 {
            let fault = #expect(throws: DatabaseFault.self) {
                try DatabaseConnection.open(
                    "host=db.invalid",
                    names: names,
                    until: .now + .milliseconds(200)
                )
            }
            expectEqual(fault?.journalError.detail.contains("resolver did not answer"), true)
            expectEqual(fault?.journalError.next?.contains("resolv.conf"), true)
        }
        // A server beside it, which needs no name, is reached.
        let both = server.address(schema: "public").replacing(
            "host=\(server.folder)",
            with: "host=db.invalid,\(server.folder)"
        )
        _ = try DatabaseConnection.open(both, names: names, until: .now + .seconds(2))
        #expect(ContinuousClock.now - start < .seconds(8))
        // One look-up, for all who asked.
        expectEqual(asked.value.load(ordering: .relaxed), 1)
        // Both the look-up that hangs, and one that is begun when it has ended.
        for _ in 0..<2 { release.signal() }
        try expectEqual(
            names.addresses(of: "db.invalid", until: .now + .seconds(60)),
            ["127.0.0.1"]
        )
    }

    @Test func `names that hang are bounded`() throws {
        let release = DispatchSemaphore(value: 0)
        let names = NameLookUp { _ in
            release.wait()
            return []
        }
        for number in 0..<16 {
            #expect(throws: DatabaseFault.self) {
                try names.addresses(of: "db\(number)", until: .now)
            }
        }
        let fault = #expect(throws: DatabaseFault.self) {
            try names.addresses(of: "db16", until: .now + .seconds(60))
        }
        expectEqual(fault?.journalError.detail.contains("too many"), true)
        for _ in 0..<16 { release.signal() }
    }

    @Test func `the system finds this machine`() throws {
        let found = try NameLookUp.shared.addresses(of: "localhost", until: .now + .seconds(10))
        #expect(found.contains { $0 == "127.0.0.1" || $0 == "::1" })
    }

    /// `check` reads addresses by itself, since it does not know libpq.
    @Test(arguments: [
        "host=a", "host = a  user= b", "a='b c' host=x", "host=a\\ b", "host='a\\'b' user=''",
        "host=a host=b", "host='a", "host", "=a", "", " ", "user=a\tpassword =\n'x'", "host=a\\",
        "postgresql://", "postgres://h", "postgresql://u@h:1/d", "postgresql://u:p@h,[::1]:2/d",
        "postgresql:///d?host=/run&port=5", "postgresql://h/d?user=a%20b", "postgresql://h/%41",
        "postgresql://u:a?b=c@h/d", "postgresql://%zz", "postgresql://h/d?user", "postgresql://@h",
        "postgresql://[::1/d", "postgresql://h?user=x", "postgresql://h/d?ssl=true",
        "postgresql://u:@h", "postgresql://h/d?user=a=b", "postgresql://a@b@c/d",
    ])
    func `check reads an address as libpq does`(address: String) throws {
        let libpq = try? DatabaseServers.settings(address)
        var own = DatabaseAddress(address)?.settings
        // Ports are none of its business.
        own?["port"] = libpq?["port"]
        // libpq knows the names of its settings.
        if libpq == nil, own != nil {
            #expect(own?["a"] != nil, "\(address)")
        } else {
            let meant = libpq?.filter { !$0.value.isEmpty }
            expectEqual(own?.filter { !$0.value.isEmpty }, meant, "\(address)")
        }
    }
}

private final class Count: Sendable {
    let value = Atomic(0)
}

/// Takes connections, and says nothing.
private final class SilentServer {
    private let descriptor: Int32
    let port: UInt16

    struct Failed: Error {}

    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(descriptor, pointer, length) == 0 && listen(descriptor, 16) == 0
                    && getsockname(descriptor, pointer, &length) == 0
            }
        }
        guard isBound else { throw Failed() }
        port = UInt16(bigEndian: address.sin_port)
    }

    deinit { close(descriptor) }
}
