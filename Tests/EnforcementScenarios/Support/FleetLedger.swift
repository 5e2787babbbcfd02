import DeviceKey
import Expectations
import Foundation
import LoopbackKit
import TestSupport
import Testing

/// Compares what clients sent and were answered, what the origin executed, and what is stored.
struct FleetLedger {
    private let fleet: Fleet
    private let load: FleetLoad
    /// What was stored when it was looked at last: a counter for each key.
    private var counters: [String: Int] = [:]

    init(_ fleet: Fleet, _ load: FleetLoad) {
        self.fleet = fleet
        self.load = load
    }

    /// Compares what is stored with what is known.
    mutating func examine(_ remark: Comment) throws {
        // The load goes on: what it has done is looked at before what has come of it.
        let (sent, enrolled, admitted) = (load.sent, load.enrolled, load.admitted)
        expectEqual(load.faults, [], remark)
        // Nobody may have had a second answer of 200, and the origin no second request.
        expectEqual(admitted.filter { $0.value > 1 }, [:], remark)
        let seen = fleet.origin.seen.map(\.target)
        let twice = Dictionary(grouping: seen) { $0 }.filter { $1.count > 1 }.keys.sorted()
        expectEqual(twice, [], remark)
        let reached = Set(seen)
        expectEqual(Set(admitted.keys).subtracting(reached), [], remark)
        for sent in sent where sent.isOfRevokedKey {
            #expect(!reached.contains(sent.target), "a revoked key was admitted; \(remark)")
        }
        var stored: [String: Int] = [:]
        for line in try fleet.keys("list").split(separator: "\n") {
            let columns = line.split(separator: "\t")
            stored[String(columns[0])] = Int(columns[4])
        }
        for (key, counter) in counters {
            #expect(stored[key] ?? -1 >= counter, "a counter went down; \(remark)")
        }
        for sent in sent where reached.contains(sent.target) {
            #expect(stored[sent.keyID.base64] ?? -1 >= Int(sent.counter), remark)
        }
        for key in enrolled {
            #expect(stored[key.base64] != nil, "a key answered 201 is lost; \(remark)")
        }
        counters = stored
    }

    /// How many of the latest are presented once more at every gateway.
    private static let latest = 50

    /// Presents once more what the origin has: each at one gateway, which take turns, and the
    /// latest at all of them.
    func replay() throws {
        let before = fleet.origin.seen.map(\.target)
        let reached = Set(before)
        let kinds = [
            load.sent.map { ($0.raw, $0.target) }, load.sentTokens.map { ($0.raw, $0.target) },
        ]
        for sent in kinds.map({ sent in sent.filter { reached.contains($0.1) } }) {
            for number in 0..<fleet.count {
                let client = try #require(fleet.member(number)).client()
                for (place, (raw, target)) in sent.enumerated()
                where place % fleet.count == number || place >= sent.count - Self.latest {
                    try expectRefused(raw, target, client)
                }
            }
        }
        expectEqual(fleet.origin.seen.count, before.count)
    }

    private func expectRefused(_ raw: [UInt8], _ target: String, _ client: HTTPClient) throws {
        var answer = try client.send(raw: raw)
        // The gateway connects again; a client tries once more.
        try eventually {
            if answer.status == 503 { answer = try client.send(raw: raw) }
            return answer.status != 503
        }
        #expect([401, 403].contains(answer.status), "\(target) again")
    }
}
