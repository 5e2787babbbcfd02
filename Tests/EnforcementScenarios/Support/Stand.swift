import Expectations
import Foundation
import LoopbackKit
import Testing

/// A gateway before an origin that fails, and how it stood before anything happened.
///
/// All of it is gone after ``end()``.
final class Stand {
    let scenario: Scenario
    let origin: FaultyOrigin
    let gateway: GatewayProcess
    let admin: HTTPClient
    /// What was open when it began to serve.
    let descriptors: OpenDescriptors
    private let dead: DeadOrigins?
    private var counters: Metrics

    /// - `rules`: the list of rules, in YAML without indentation.
    /// - `more`: further sections of the configuration.
    /// - `dead`: further origins, which take no connection.
    /// - `serve`: starts the gateway.
    init(
        rules: String = "",
        more: String = "",
        loops: Int = 2,
        dead: DeadOrigins? = nil,
        serve: (Scenario) throws -> GatewayProcess = { try $0.serve() }
    ) throws {
        self.dead = dead
        scenario = try Scenario()
        origin = try scenario.faultyOrigin()
        let all = [dead?.rules ?? "", rules].filter { !$0.isEmpty }.joined(separator: "\n")
        try scenario.configure(
            origin: origin.address,
            rules: all.isEmpty ? "[]" : all,
            more: more,
            loops: loops,
            origins: dead?.origins ?? ""
        )
        gateway = try serve(scenario)
        admin = try gateway.adminClient()
        descriptors = try gateway.descriptors(admin)
        counters = try Metrics(admin)
    }

    func end() { scenario.end() }

    /// Ends the gateway as an operator does.
    func stop(location: SourceLocation = #_sourceLocation) throws {
        try expectEqual(gateway.stop(), 0, sourceLocation: location)
    }

    /// Counters that move are compared with how they are now.
    func mark() throws { counters = try Metrics(admin) }

    /// Waits until no client is connected and nothing is open but what was at first.
    func awaitRest() throws { try gateway.awaitRest(admin, as: descriptors) }

    /// Of the counters of faults these have moved since ``mark()``, by one each.
    func expectMoved(
        _ names: [String],
        _ remark: Comment? = nil,
        location: SourceLocation = #_sourceLocation
    ) throws {
        let wanted = Dictionary(uniqueKeysWithValues: names.map { ($0, 1.0) })
        let moved = try Metrics(admin).moved(since: counters)
        expectEqual(moved, wanted, remark, sourceLocation: location)
    }

    /// Waits for the line of the access log about a path, and looks what it tells.
    @discardableResult
    func expectLine(
        _ path: String,
        _ status: Int,
        _ problem: String?,
        location: SourceLocation = #_sourceLocation
    ) throws -> [String: Any] {
        let line = try gateway.line(about: path)
        #expect(line["status"] as? Int == status, "\(path)", sourceLocation: location)
        #expect(line["problem"] as? String == problem, "\(path)", sourceLocation: location)
        return line
    }
}
