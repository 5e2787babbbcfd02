import Foundation
import Testing

extension Scenarios {
    /// What becomes of the access log when it can't be written.
    @Suite struct Logs {
        private static let dropped = "access_log_lines_dropped_total"

        @Test func `lines for a full disk are counted, and requests are served`() throws {
            // Every write to it fails as on a full disk (full(4)).
            let stand = try Stand(more: "log: { access: /dev/full }")
            defer { stand.end() }
            let (gateway, admin) = (stand.gateway, stand.admin)
            #expect(try Metrics(admin)[Self.dropped] == 0)
            let client = gateway.client()
            for _ in 0..<5 { #expect(try client.send("GET", "/plain").status == 200) }
            try gateway.waitUntil("five lines counted", admin) { $0[Self.dropped] == 5 }
            try stand.stop()
        }

        @Test func `a line that was torn off by a full disk does not run into the next`() throws {
            // Files may grow to so many blocks of 512 octets; behind that, writes fail.
            let bounded = ["/bin/sh", "-c", #"ulimit -f 1024 && exec "$0" "$@""#]
            let stand = try Stand(more: "log: { access: ./access.log }", lanes: 1) {
                try $0.serve(within: bounded)
            }
            defer { stand.end() }
            let (gateway, admin) = (stand.gateway, stand.admin)
            let log = stand.scenario.path("access.log")
            let client = gateway.client()
            let path = "/" + String(repeating: "a", count: 6_000)
            let limit = 1024 * 512
            var sent = 0
            while try Metrics(admin)[Self.dropped] == 0, sent <= limit / 6_000 + 100 {
                #expect(try client.send("GET", path).status == 200)
                sent += 1
            }
            #expect(try Metrics(admin)[Self.dropped] >= 1)
            let octets = try Data(contentsOf: URL(filePath: log))
            #expect(octets.count == limit && octets.last != UInt8(ascii: "\n"))
            // There is room again behind the end of the torn line.
            let file = try FileHandle(forUpdating: URL(filePath: log))
            try file.truncate(atOffset: 0)
            try file.write(contentsOf: octets.suffix(10))
            try file.close()
            #expect(try client.send("GET", "/plain").status == 200)
            try stand.stop()
            let text = try String(contentsOfFile: log, encoding: .utf8)
            let lines = text.split(separator: "\n")
            #expect(lines.first?.utf8.count == 10)
            for line in lines.dropFirst() {
                _ = try JSONSerialization.jsonObject(with: Data(line.utf8))
            }
            #expect(lines.last?.contains(#""path":"/plain""#) == true)
        }
    }
}
