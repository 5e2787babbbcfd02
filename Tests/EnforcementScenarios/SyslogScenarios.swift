import Cryptography
import Expectations
import Foundation
import Glibc
import LoopbackKit
import Testing

@testable import Gateway

extension Scenarios {
    /// Lines of the access log on their way to a syslog daemon.
    @Suite struct Syslog {
        private static let dropped = "access_log_lines_dropped_total"

        /// What stands behind the header, read as JSON.
        private static func line(_ datagram: String, behind header: Regex<Substring>) throws
            -> [String: Any]
        {
            let found = try #require(datagram.prefixMatch(of: header), "\(datagram)")
            #expect(!datagram.hasSuffix("\n"))
            let json = Data(datagram[found.range.upperBound...].utf8)
            return try #require(try JSONSerialization.jsonObject(with: json) as? [String: Any])
        }

        private static var local: Regex<Substring> {
            #/<30>[A-Z][a-z]{2} [ 123]\d \d\d:\d\d:\d\d portcullis\[\d+\]: /#
        }

        @Test func `each request is a datagram to the daemon's socket, as syslog(3) writes it`()
            throws
        {
            let folder = try Scenario()
            defer { folder.end() }
            let path = folder.path("log.sock")
            let daemon = try NoticeSocket(path)
            let stand = try Stand(more: "log: { access: \"syslog:unix:\(path)\" }")
            defer { stand.end() }
            let client = stand.gateway.client()
            for number in 0..<3 {
                try expectEqual(client.send("GET", "/syslog/\(number)").status, 200)
                let line = try Self.line(try #require(daemon.next()), behind: Self.local)
                #expect(line["path"] as? String == "/syslog/\(number)")
                #expect(line["status"] as? Int == 200)
            }
            try stand.stop()
        }

        @Test func `a daemon that does not read keeps no request, and gets each line later`()
            throws
        {
            let folder = try Scenario()
            defer { folder.end() }
            let path = folder.path("log.sock")
            let daemon = try NoticeSocket(path)
            let stand = try Stand(more: "log: { access: \"syslog:unix:\(path)\" }", loops: 1)
            defer { stand.end() }
            let client = stand.gateway.client()
            // More than the socket keeps for its reader, and fewer than wait for a second in all.
            let kept = "/proc/sys/net/unix/max_dgram_qlen"
            let limit = try String(contentsOfFile: kept, encoding: .utf8)
            let count = (Int(limit.filter(\.isNumber)) ?? 512) + 50
            for number in 0..<count {
                try expectEqual(client.send("GET", "/\(number)").status, 200)
            }
            var paths: [String] = []
            while paths.count < count, let datagram = daemon.next() {
                let line = try Self.line(datagram, behind: Self.local)
                paths.append(line["path"] as? String ?? "")
            }
            let lost = try Metrics(stand.admin)[Self.dropped]
            expectEqual(Double(paths.count) + lost, Double(count))
            #expect(lost < 50)
            try stand.stop()
        }

        @Test func `lines that come while the daemon is away are counted, and the next ones sent`()
            throws
        {
            let folder = try Scenario()
            defer { folder.end() }
            let path = folder.path("log.sock")
            let stand = try Stand(more: "log: { access: \"syslog:unix:\(path)\" }")
            defer { stand.end() }
            let (gateway, admin) = (stand.gateway, stand.admin)
            try expectEqual(gateway.complaints(of: "where no socket is, so that lines are lost"), 1)
            let client = gateway.client()
            for _ in 0..<4 { try expectEqual(client.send("GET", "/lost").status, 200) }
            try gateway.waitUntil("four lines counted", admin) { $0[Self.dropped] == 4 }
            let daemon = try NoticeSocket(path)
            try expectEqual(client.send("GET", "/found").status, 200)
            let line = try Self.line(try #require(daemon.next()), behind: Self.local)
            #expect(line["path"] as? String == "/found")
            try expectEqual(Metrics(admin)[Self.dropped], 4)
            try stand.stop()
        }

        @Test func `over UDP each line has the header of RFC 5424`() throws {
            let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            defer { close(descriptor) }
            var address = LoopbackKit.address(port: 0)
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    expectEqual(bind(descriptor, $0, length), 0)
                    expectEqual(getsockname(descriptor, $0, &length), 0)
                }
            }
            let port = UInt16(bigEndian: address.sin_port)
            let stand = try Stand(more: "log: { access: \"syslog:127.0.0.1:\(port)\" }")
            defer { stand.end() }
            try expectEqual(stand.gateway.client().send("GET", "/udp").status, 200)
            #expect(Wire.isReady(descriptor, for: POLLIN, within: Wire.patienceMilliseconds))
            var bytes = [UInt8](repeating: 0, count: 4_096)
            let count = recv(descriptor, &bytes, bytes.count, 0)
            let datagram = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
            let header = #/<30>1 [0-9T:-]{19}Z [!-~]{1,255} portcullis \d+ access - /#
            #expect(try Self.line(datagram, behind: header)["path"] as? String == "/udp")
            try stand.stop()
        }

        @Test func `a host's name that RFC 5424 does not allow is a hyphen`() {
            let now = UnixTime(seconds: 0)
            for (name, shown) in [("shop", "shop"), ("", "-"), ("a b", "-"), ("käse", "-")] {
                let header = SyslogForm.network(host: name).header(at: now, process: 7)
                expectEqual(
                    String(decoding: header, as: UTF8.self),
                    "<30>1 1970-01-01T00:00:00Z \(shown) portcullis 7 access - "
                )
            }
        }
    }
}
