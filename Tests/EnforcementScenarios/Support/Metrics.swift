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
        for line in page.text.split(separator: "\n") where line.hasPrefix("portcullis_") {
            let words = line.dropFirst("portcullis_".count).split(separator: " ")
            guard words.count == 2, let name = words[0].split(separator: "{").first else {
                continue
            }
            values[String(name), default: 0] += Double(words[1]) ?? 0
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
