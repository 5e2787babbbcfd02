import AppleStandIn
import Expectations
import Foundation
import LoopbackKit
import Parties
import Testing

extension Scenarios {
    /// Origins that ask Apple about devices by themselves.
    @Suite(.ofApple, .enabled(if: Scenario.isPossible)) struct DeviceCalls {
        private static let open = "{ address: 127.0.0.1:0, calls: any }"

        private func call(
            _ task: String,
            _ more: String = "",
            token: String = DeviceStand.token(),
            on client: HTTPClient
        ) throws -> Answer {
            let text = #"{"device_token":"\#(token)","environment":"test"\#(more)}"#
            return try client.send("POST", "/device-check/\(task)", content: Array(text.utf8))
        }

        @Test func `bits are read, changed one by one, and a token is validated`() throws {
            let stand = try DeviceStand(admin: Self.open)
            defer { stand.end() }
            let admin = stand.admin
            let never = try call("query", on: admin)
            expectEqual(never.status, 200)
            expectEqual(never.text, #"{"bit0":false,"bit1":false,"last_update_time":null}"# + "\n")
            let set = try call("update", #","bit1":true"#, on: admin)
            expectEqual(set.text, #"{"bit0":false,"bit1":true}"# + "\n")
            let other = try call("update", #","bit0":true,"bit1":null"#, on: admin)
            expectEqual(other.text, #"{"bit0":true,"bit1":true}"# + "\n")
            expectEqual(stand.apple.bits(of: "phone").map { $0 == (true, true) }, true)
            let read = try call("query", on: admin)
            #expect(read.text.hasPrefix(#"{"bit0":true,"bit1":true,"last_update_time":"20"#))
            let both = try call("update", #","bit0":false,"bit1":false"#, on: admin)
            expectEqual(both.text, #"{"bit0":false,"bit1":false}"# + "\n")
            expectEqual(stand.apple.calls.of(.queryBits).count, 4)
            try expectEqual(call("validate", on: admin).text, #"{"genuine":true}"# + "\n")
            let forged = try call("validate", token: "AAAA", on: admin)
            #expect(forged.status == 200 && forged.text == #"{"genuine":false}"# + "\n")
        }

        @Test(
            arguments: [
                (.status(401), "key-refused"), (.status(403), "key-refused"),
                (.status(405), "unreadable"), (.status(429), "too-many"),
                (.status(500), "server-error"), (.status(503, retryAfter: 1), "server-error"),
                (
                    .status(400, body: "Missing or incorrectly formatted time stamp"),
                    "call-refused"
                ),
                (.garbage, "garbled"), (.cut, "broken"),
                (.long(bytes: 300_000), "answer-too-long"), (.hang, "timeout"),
            ] as [(StandInPlay, String)]
        )
        func `each way in which Apple does not answer has its word`(
            play: StandInPlay,
            word: String
        ) throws {
            let timeout = play == .hang ? "2s" : "5s"
            let stand = try DeviceStand(admin: Self.open, timeout: timeout)
            defer { stand.end() }
            stand.apple.always(.validateToken, play)
            let answer = try call("validate", on: stand.admin)
            #expect(answer.status == 503 && answer.reason == "device-check-unavailable")
            #expect(answer.object?["apple"] as? [String] == [word])
        }

        @Test func `what Apple refuses or does not say is an answer of its own`() throws {
            let stand = try DeviceStand(admin: Self.open)
            defer { stand.end() }
            for task in ["query", "update"] {
                let refused = try call(
                    task,
                    task == "update" ? #","bit0":true"# : "",
                    token: "AAAA",
                    on: stand.admin
                )
                #expect(refused.status == 400 && refused.reason == "device-token-malformed")
            }
            stand.apple.always(.queryBits, .status(503))
            let silent = try call("update", #","bit0":true"#, on: stand.admin)
            #expect(silent.status == 503 && silent.reason == "device-check-unavailable")
            #expect(silent.object?["apple"] as? [String] == ["server-error"])
            #expect(stand.apple.calls.of(.updateBits).isEmpty)
        }

        @Test func `a token that a call has used is good for no request, and for no other call`()
            throws
        {
            let stand = try DeviceStand(admin: Self.open)
            defer { stand.end() }
            let token = DeviceStand.token()
            try expectEqual(call("query", token: token, on: stand.admin).status, 200)
            try expectEqual(stand.send("/v1/trial", token: token).reason, "device-token-used")
            for task in ["query", "validate"] {
                let again = try call(task, token: token, on: stand.admin)
                #expect(again.status == 400 && again.reason == "device-token-used")
            }
            // Who changes bits has read them with the same token.
            let set = try call("update", #","bit1":true"#, token: token, on: stand.admin)
            expectEqual(set.status, 200)
            for task in ["validate", "update"] {
                let token = DeviceStand.token()
                let bits = task == "update" ? #","bit0":false"# : ""
                try expectEqual(call(task, bits, token: token, on: stand.admin).status, 200)
                try expectEqual(stand.send("/v1/trial", token: token).reason, "device-token-used")
            }
            let shown = DeviceStand.token()
            try expectEqual(stand.send("/v1/kind", token: shown).status, 403)
            try expectEqual(
                call("query", token: shown, on: stand.admin).reason,
                "device-token-used"
            )
            // What Apple did not take, or not say, is not used.
            let silent = DeviceStand.token()
            stand.apple.next(.queryBits, .status(503))
            try expectEqual(call("query", token: silent, on: stand.admin).status, 503)
            try expectEqual(call("query", token: silent, on: stand.admin).status, 200)
        }

        @Test func `a call that can't be read asks nothing`() throws {
            let stand = try DeviceStand(admin: Self.open)
            defer { stand.end() }
            let noToken = "device_token is no device token; use base64"
            let texts = [
                ("", "column 1"), ("{}", noToken), ("[]", "column 1"),
                (#"{"device_token":""}"#, noToken), (#"{"device_token":7}"#, noToken),
                (#"{"device_token":"no base64"}"#, noToken),
                (#"{"device_token":"AAAA"}}"#, "column"),
                (
                    #"{"device_token":"AAAA","bit0":true}"#,
                    "unknown member; use device_token, environment, team"
                ),
                (
                    #"{"device_token":"AAAA","device_token":"AAAA"}"#,
                    "device_token is there twice"
                ),
                (
                    #"{"device_token":"AAAA","environment":"sandbox"}"#,
                    "environment is none; use production or development"
                ),
                (#"{"device_token":"AAAA","team":7}"#, "team is no string"),
            ]
            for (text, problem) in texts {
                let answer = try stand.admin.send(
                    "POST",
                    "/device-check/query",
                    content: Array(text.utf8)
                )
                #expect(answer.status == 400 && answer.reason == "request-malformed", "\(text)")
                let problems = answer.object?["problems"] as? [String]
                expectEqual(problems?.count, 1, "\(text)")
                expectEqual(problems?.first?.contains(problem), true, "\(text): \(answer.text)")
            }
            let bits = [
                ("", "no bit is named; use bit0 or bit1 with true or false"),
                (#","bit0":null"#, "no bit is named"),
                (#","bit0":1"#, "bit0 is no bit; use true, false or null"),
                (#","bit1":"true""#, "bit1 is no bit"),
            ]
            for (bits, problem) in bits {
                let answer = try call("update", bits, on: stand.admin)
                expectEqual(answer.reason, "request-malformed")
                #expect(answer.text.contains(problem), "\(answer.text)")
            }
            let large = [UInt8](repeating: 0x20, count: 20_000)
            let answer = try stand.admin.send("POST", "/device-check/query", content: large)
            expectEqual(answer.status, 413)
            try expectEqual(stand.admin.send("GET", "/device-check/query").status, 405)
            expectEqual(stand.apple.calls.count, 0)
        }

        @Test func `nobody who reaches a port sets bits, unless the configuration says so`() throws
        {
            let stand = try DeviceStand()
            defer { stand.end() }
            for task in ["query", "update", "validate"] {
                try expectEqual(call(task, #","bit0":true"#, on: stand.admin).status, 404)
            }
            expectEqual(stand.apple.calls.count, 0)
        }

        @Test func `a Unix socket serves them`() throws {
            let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let socket = folder.appending(path: "admin").path
            let stand = try DeviceStand(admin: "{ address: \"unix:\(socket)\" }")
            defer { stand.end() }
            try expectEqual(call("query", on: HTTPClient(path: socket)).status, 200)
        }
    }
}
