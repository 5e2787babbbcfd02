import ConfigurationReading
import Expectations
import Testing

@testable import ProvingGround

/// What a driver gets for the steps of a case.
@Suite struct DrivenClientsTests {
    private static let text = """
        name: A claim
        why: A reason
        section: the-key
        steps:
          - start: { context: account-1 }
          - start: { state: another }
            process: 2
          - clock: 5
          - send: { method: POST, path: "/a/{n}", bytes: AP8=, count: 2, beside: [2] }
          - send: { content: "<{challenge}>", fields: { X-Number: "{n}" } }
          - reset: { context: account-2 }
          - gateway: restart
          - start: { state: kept }
          - clock: 2
          - start: {}
        """

    /// The steps in words. Records are numbered as they come.
    private func told() throws -> [String] {
        let log = ProblemLog()
        let read = CaseReader(log: log)
            .proving(Array(Self.text.utf8), file: "case.yaml", group: "signing", name: "case")
        let proving = try #require(read, "\(log.sorted.map(\.text))")
        let places = DrivenClients.Places(gateway: "http://g", device: "http://d")
        var clients = DrivenClients(of: proving, places: places)
        var steps: [[String: Any]] = []
        for step in proving.steps { steps += clients.steps(for: step) { "AQK5" } }
        steps += clients.stopAll()
        var records: [String] = []
        return steps.map { step in
            var words = ["\(step["do"] ?? "")", "\(step["process"] ?? "")"]
            if let record = step["record"] as? String {
                if !records.contains(record) { records.append(record) }
                words.append("record \(records.firstIndex(of: record) ?? -1)")
            }
            words += (step["ahead"] as? Double).map { ["ahead \($0)"] } ?? []
            words += (step["context"] as? String).map { [$0] } ?? []
            for request in step["requests"] as? [[String: Any]] ?? [] {
                let members = ["process", "method", "path", "fields", "content"]
                words.append(
                    "(" + members.map { "\(request[$0] ?? "")" }.joined(separator: " ") + ")"
                )
            }
            return words.joined(separator: " ")
        }
    }

    @Test func `a driver has nothing to count, to fill in or to end by itself`() throws {
        expectEqual(
            try told(),
            [
                "start 1 record 0 ahead 0.0 account-1",
                "start 2 record 1 ahead 0.0",
                "clock 1 ahead 5.0",
                "clock 2 ahead 5.0",
                "send 1 (1 POST /a/0 [] AP8=) (1 POST /a/1 [] AP8=) (2 POST /a/0 [] AP8=)"
                    + " (2 POST /a/1 [] AP8=)",
                #"send 1 (1 POST /orders/1 [["X-Number", "0"]] PEFRSzU+)"#,
                "reset 1 account-2",
                "stop 1",
                "start 1 record 0 ahead 5.0",
                "clock 1 ahead 7.0",
                "clock 2 ahead 7.0",
                "stop 1",
                "stop 2",
                "start 1 record 2 ahead 7.0",
                "stop 1",
            ]
        )
    }
}
