import AppAttest
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// Content that streams while its key is revoked or deleted.
    @Suite struct StreamedKeys {
        enum Store: CaseIterable, Sendable {
            case sqlite, postgresql

            static let possible = allCases.filter {
                $0 == .sqlite || DatabaseServer.programs != nil
            }
        }

        enum Order: String, CaseIterable, Sendable { case revoke, delete }

        enum Proof: CaseIterable, Sendable {
            case assertion, session
            /// The content is not signed, so it has no digest.
            case unsignedContent
        }

        private static let rules = """
            - id: signed
              match: { path: /v1/signed }
              mode: enforce
              accept: [assertion, session]
              sign: [method, target, body]
              body: { digest: streamed }
            - id: bare
              match: { path: /v1/bare }
              mode: enforce
              sign: [method, target]
            """

        /// A gateway on one of the stores, and keys.
        private struct Stage {
            let scenario: Scenario
            let fleet: Fleet?
            let origin: RecordingOrigin
            let gateway: GatewayProcess
            private(set) var keys: [SoftwareKey]
            private var commands: [Thread.Answer<Scenario.Result>] = []

            init(_ store: Store, keys count: Int) throws {
                switch store {
                case .sqlite:
                    scenario = try Scenario()
                    fleet = nil
                    origin = try scenario.origin()
                    try scenario.configure(origin, rules: StreamedKeys.rules)
                    keys = try scenario.imported(count)
                    gateway = try scenario.serve()
                case .postgresql:
                    let fleet = try Fleet(1, rules: StreamedKeys.rules)
                    (self.fleet, scenario, origin) = (fleet, fleet.scenario, fleet.origin)
                    keys = try fleet.imported(count)
                    gateway = try #require(fleet.gateway(0))
                }
            }

            func end() {
                if let fleet { fleet.end() } else { scenario.end() }
            }

            /// Gives the order about the last key, and waits until the gateway has heard of it. On
            /// a database the command returns three seconds later.
            mutating func give(_ order: Order) throws {
                let file = scenario.path(fleet == nil ? "portcullis.yaml" : "direct.yaml")
                let id = keys.removeLast().keyID.base64
                let before = try Metrics(gateway.adminClient())
                let (place, words) = (scenario, ["keys", order.rawValue, "--config", file, id])
                commands.append(Thread.Answer { try place.portcullis(words) })
                let admin = try gateway.adminClient()
                let isHeard = try eventually {
                    let metrics = try Metrics(admin)
                    return metrics["keys_revoked"] > before["keys_revoked"]
                        || metrics["keys"] < before["keys"]
                }
                try #require(isHeard)
            }

            /// All orders were obeyed.
            func expectDone() throws {
                for command in commands {
                    let done = try command.value()
                    expectEqual(done.status, 0, "\(done.complained)")
                }
            }

            /// What the last key sends.
            func fields(_ proof: Proof, _ content: [UInt8]) throws
                -> [(name: String, value: String)]
            {
                var key = keys[keys.count - 1]
                let target = proof == .unsignedContent ? "/v1/bare" : "/v1/signed"
                let request = SoftwareKey.Request(method: "POST", target: target, content: content)
                switch proof {
                case .assertion:
                    return key.proof(
                        of: request,
                        signing: .lines([.method, .target, .body], headers: [])
                    ).fields
                case .unsignedContent:
                    return key.proof(of: request, signing: .lines([.method, .target], headers: []))
                        .fields
                case .session:
                    let client = gateway.client()
                    let opening = SoftwareKey.Request(
                        method: "POST",
                        target: "/.well-known/app-attest/sessions",
                        challenge: try gateway.challenges("assertion", client)[0]
                    )
                    let signing = SigningForm.lines(.all, headers: [])
                    let answer = try client.send(opening, key.proof(of: opening, signing: signing))
                    var session = try #require(SoftwareSession(answer: answer.body))
                    let next = session.proof(
                        of: request,
                        signing: .lines([.method, .target, .body], headers: [])
                    )
                    return try #require(next).fields
                }
            }
        }

        @Test(arguments: Store.possible, Proof.allCases)
        func `an upload whose key is revoked or deleted meanwhile never ends at the origin`(
            store: Store,
            proof: Proof
        ) throws {
            var stage = try Stage(store, keys: 4)
            defer { stage.end() }
            for order in Order.allCases {
                for isChunked in [false, true] {
                    let remark: Comment = "\(store), \(proof), \(order), chunked: \(isChunked)"
                    try play(&stage, proof, order, isChunked, remark)
                }
            }
            try stage.expectDone()
        }

        private func play(
            _ stage: inout Stage,
            _ proof: Proof,
            _ order: Order,
            _ isChunked: Bool,
            _ remark: Comment
        ) throws {
            let before = stage.origin.seen.count
            let content = [UInt8](repeating: 7, count: 40_000)
            var fields = try stage.fields(proof, content)
            fields.append(
                isChunked ? ("Transfer-Encoding", "chunked") : ("Content-Length", "40000")
            )
            let target = proof == .unsignedContent ? "/v1/bare" : "/v1/signed"
            let socket = try Wire(port: stage.gateway.port)
            try socket.send(HTTPClient.head("POST", target, fields) + "\r\n")
            if isChunked { try socket.send("9c40\r\n") }
            try socket.send([UInt8](content[..<20_000]))
            try stage.origin.awaitHeads(before + 1)
            try stage.give(order)
            try socket.send([UInt8](content[20_000...]))
            if isChunked { try socket.send("\r\n0\r\n\r\n") }
            let answer = try socket.readHead()
            let (status, reason) =
                order == .revoke ? ("403", "key-revoked") : ("401", "key-unknown")
            #expect(answer.startLine.hasPrefix("HTTP/1.1 \(status)"), remark)
            let seen = try stage.origin.seen(before + 1)[before]
            #expect(!seen.isComplete && seen.wasReset && !seen.wasEndedInOrder, remark)
            let line = try stage.gateway.line(about: target, after: before)
            #expect(line["reason"] as? String == reason, remark)
            #expect(line["content"] as? String == "cut-short", remark)
        }
    }
}
