import Foundation
import LoopbackKit

/// What the admin listener says at one moment.
struct Metrics {
    /// Names without the prefix; samples of several labels are added up.
    private let values: [String: Double]

    /// Counters that move when something went wrong.
    static let faults = [
        "accept_pauses", "client_aborts", "client_timeouts", "malformed_requests",
        "origin_connect_failures", "origin_failures", "origin_malformed_responses",
        "origin_retries", "origin_timeouts", "tls_failures",
    ]

    init(_ client: HTTPClient) throws {
        let page = try client.send("GET", "/metrics")
        var values: [String: Double] = [:]
        let prefix = Array("portcullis_".utf8)
        for line in Wire.split(page.body, at: [UInt8(ascii: "\n")])
        where Wire.index(of: prefix, in: line) == 0 {
            // The name ends before labels, or before the value.
            guard let space = line.lastIndex(of: UInt8(ascii: " ")) else { continue }
            let end = Wire.index(of: [UInt8(ascii: "{")], in: line) ?? space
            let name = String(decoding: line[prefix.count..<end], as: UTF8.self)
            let value = String(decoding: line[(space + 1)...], as: UTF8.self)
            values[name, default: 0] += Double(value) ?? 0
        }
        self.values = values
    }

    subscript(name: String) -> Double { values[name] ?? -1 }

    /// The counters of faults that have moved since, and by how much.
    func moved(since earlier: Metrics) -> [String: Double] {
        var moved: [String: Double] = [:]
        for name in Self.faults {
            let difference = self[name + "_total"] - earlier[name + "_total"]
            if difference != 0 { moved[name] = difference }
        }
        return moved
    }
}
