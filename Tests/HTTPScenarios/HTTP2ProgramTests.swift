import Expectations
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    /// Clients that others wrote, where they are installed (`deploy/install-packages test`).
    struct HTTP2ProgramTests {
        private static func has(_ tool: String) -> Bool { ChildProcess.tool(tool) != nil }

        /// Why a test is skipped.
        private static func missing(_ tool: String) -> Comment {
            "no \(tool): deploy/install-packages test installs it"
        }

        private func run(_ tool: String, _ arguments: [String]) throws -> String {
            let path = try #require(ChildProcess.tool(tool))
            let outcome = try ChildProcess.run(path, arguments)
            expectEqual(outcome.status, 0, "\(outcome)")
            return String(decoding: outcome.output, as: UTF8.self)
        }

        @Test(.enabled(if: has("curl"), missing("curl")), arguments: [false, true])
        func `curl gets and posts over HTTP/2`(_ isSecure: Bool) throws {
            let bench = try Bench(isSecure: isSecure, http2: true)
            defer { bench.stop() }
            let scheme = isSecure ? "https" : "http"
            let how = isSecure ? "--http2" : "--http2-prior-knowledge"
            let url = "\(scheme)://127.0.0.1:\(bench.gateway.port)/a"
            let common = ["-s", "-k", how, "-w", "<%{http_version} %{http_code}>"]
            #expect(try run("curl", common + [url]).contains("<2 200>"))
            let content = String(repeating: "x", count: 100_000)
            #expect(try run("curl", common + ["-d", content, url]).contains("<2 200>"))
            expectEqual(bench.origin.requests.last?.body.count, content.utf8.count)
        }

        @Test(.enabled(if: has("nghttp"), missing("nghttp")))
        func `nghttp gets many at once`() throws {
            let bench = try Bench(http2: true)
            defer { bench.stop() }
            let url = "http://127.0.0.1:\(bench.gateway.port)/a"
            _ = try run("nghttp", ["-n", "-m", "50", url])
            expectEqual(bench.origin.requests.count, 50)
        }

        @Test(.enabled(if: has("h2load"), missing("h2load")), arguments: [false, true])
        func `all requests of h2load succeed`(_ isSecure: Bool) throws {
            let bench = try Bench(isSecure: isSecure, http2: true)
            defer { bench.stop() }
            let scheme = isSecure ? "https" : "http"
            let url = "\(scheme)://127.0.0.1:\(bench.gateway.port)/a"
            let text = try run("h2load", ["-n", "800", "-c", "8", "-m", "16", url])
            #expect(text.contains("800 succeeded, 0 failed, 0 errored"))
        }
    }
}
