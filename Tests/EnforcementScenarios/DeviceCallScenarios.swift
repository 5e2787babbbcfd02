import AppleServices
import AppleStandIn
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    /// Origins that ask Apple about devices by themselves.
    @Suite(.enabled(if: Scenario.isPossible)) struct DeviceCalls {
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
            #expect(never.status == 200)
            #expect(never.text == #"{"bit0":false,"bit1":false,"last_update_time":null}"# + "\n")
            let set = try call("update", #","bit1":true"#, on: admin)
            #expect(set.text == #"{"bit0":false,"bit1":true}"# + "\n")
            let other = try call("update", #","bit0":true,"bit1":null"#, on: admin)
            #expect(other.text == #"{"bit0":true,"bit1":true}"# + "\n")
            #expect(stand.apple.bits(of: "phone").map { $0 == (true, true) } == true)
            let read = try call("query", on: admin)
            #expect(read.text.hasPrefix(#"{"bit0":true,"bit1":true,"last_update_time":"20"#))
            let both = try call("update", #","bit0":false,"bit1":false"#, on: admin)
            #expect(both.text == #"{"bit0":false,"bit1":false}"# + "\n")
            #expect(stand.apple.calls.of(.queryBits).count == 4)
            #expect(try call("validate", on: admin).text == #"{"genuine":true}"# + "\n")
            let forged = try call("validate", token: "AAAA", on: admin)
            #expect(forged.status == 200 && forged.text == #"{"genuine":false}"# + "\n")
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

        @Test func `a call that can't be read asks nothing`() throws {
            let stand = try DeviceStand(admin: Self.open)
            defer { stand.end() }
            let texts = [
                "", "{}", "[]", #"{"device_token":""}"#, #"{"device_token":"AAAA","bit0":true}"#,
                #"{"device_token":"AAAA","device_token":"AAAA"}"#,
                #"{"device_token":"AAAA","environment":"sandbox"}"#,
            ]
            for text in texts {
                let answer = try stand.admin.send(
                    "POST",
                    "/device-check/query",
                    content: Array(text.utf8)
                )
                #expect(answer.status == 400 && answer.reason == "request-malformed", "\(text)")
            }
            for bits in ["", #","bit0":null"#, #","bit0":1"#, #","bit0":"true""#] {
                #expect(try call("update", bits, on: stand.admin).reason == "request-malformed")
            }
            let large = [UInt8](repeating: 0x20, count: 20_000)
            let answer = try stand.admin.send("POST", "/device-check/query", content: large)
            #expect(answer.status == 413)
            #expect(try stand.admin.send("GET", "/device-check/query").status == 405)
            #expect(stand.apple.calls.count == 0)
        }

        @Test func `nobody who reaches a port sets bits, unless the configuration says so`() throws
        {
            let stand = try DeviceStand()
            defer { stand.end() }
            for task in ["query", "update", "validate"] {
                #expect(try call(task, #","bit0":true"#, on: stand.admin).status == 404)
            }
            #expect(stand.apple.calls.count == 0)
        }

        @Test func `a Unix socket serves them`() throws {
            let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let socket = folder.appending(path: "admin").path
            let stand = try DeviceStand(admin: "{ address: \"unix:\(socket)\" }")
            defer { stand.end() }
            #expect(try call("query", on: HTTPClient(path: socket)).status == 200)
        }
    }
}
