import Expectations
import Foundation
import LoopbackKit
import TestSupport
import Testing

// `portcullis doctor --through`: what a front changes on the way, with each example as it is and
// with faults.
extension Scenarios.Decisions {
    /// Faults of an example, and the doctor's findings about them but for those that are `ok`.
    private typealias Fault = (edits: [(old: String, new: String)], says: [String])

    /// The findings about an example as it is.
    private static func findings(_ proxy: DecidingProxy) -> [String] {
        switch proxy {
        // The listener says `content: whole`, which they can't send.
        case .nginx, .caddy: ["error content: none of 40 bytes arrive"]
        case .haproxy: ["warning large: none of 1048576 bytes arrive"]
        case .traefik: [rewrittenByTraefik, rewrittenByTraefik]
        case .envoy, .envoyGRPC, .mesh: []
        }
    }

    private static let sent = "warning spelling: /a//b/./%41/%2f%7E?b=%2f&a=1;c&a=%41 arrives as"
    private static let rewrittenByTraefik = "\(sent) /a/b/A/%2F~?b=%2f&a=1&c&a=%41:"
    private static let decodedByEnvoy = [
        "\(sent) /a/b/./%41/%2f%7E?b=%2f&a=1;c&a=%41:",
        "error gzip: Content-Encoding: gzip is decoded",
        "error large: only 1024 of 1048576 bytes arrive",
    ]

    private static let types = "type.googleapis.com/envoy.extensions"
    private static let decompressor = """
        - name: envoy.filters.http.decompressor
                            typed_config:
                              "@type": \(types).filters.http.decompressor.v3.Decompressor
                              decompressor_library:
                                name: gzip
                                typed_config:
                                  "@type": \(types).compression.gzip.decompressor.v3.Gzip
                          - name: envoy.filters.http.buffer
        """

    private static let faultsOfEnvoy = [
        ("- name: envoy.filters.http.buffer", decompressor),
        ("merge_slashes: false", "merge_slashes: true"),
        (
            "max_request_bytes: 1048576\n                        allow_partial_message: false",
            "max_request_bytes: 1024\n                        allow_partial_message: true"
        ),
    ]

    private static func fault(_ proxy: DecidingProxy) -> Fault? {
        switch proxy {
        case .nginx:
            // It forwards everything to the gateway, as other proxies before a gateway do.
            (
                [
                    ("    auth_request /_portcullis;\n", "    client_max_body_size 4k;\n"),
                    ("server 127.0.0.1:8081;", "server 127.0.0.1:8080;"),
                    ("proxy_pass http://application;", "proxy_pass http://application/;"),
                    ("proxy_set_header Host $http_host;", ""),
                ],
                [
                    "warning plain: 127.0.0.1:",
                    "error plain: App-Attest-Key-Id, App-Attest-Assertion, App-Attest-Challenge",
                    "\(sent) /a/b/A/~?b=%2f&a=1;c&a=%41:",
                    "error fields: App-Attest-Key-Id, App-Attest-Assertion",
                    "warning large: does not arrive; the front answers 413",
                ]
            )
        case .haproxy:
            (
                [("tune.bufsize 65536", "tune.bufsize 8192")],
                ["error fields: does not arrive; the front answers 400"] + findings(proxy)
            )
        case .traefik:
            (
                [("maxBodySize: 1048576", "maxBodySize: 1024")],
                findings(proxy) + ["warning large: does not arrive; the front answers 401"]
            )
        case .envoy:
            (
                faultsOfEnvoy + [
                    (
                        "- { prefix: \"app-attest-\", ignore_case: true }",
                        "- { exact: app-attest-key-id, ignore_case: true }"
                    )
                ],
                ["error plain: App-Attest-Assertion, App-Attest-Challenge lost"]
                    + [decodedByEnvoy[0], "error fields: App-Attest-Assertion"]
                    + decodedByEnvoy.dropFirst()
            )
        case .envoyGRPC: (faultsOfEnvoy, decodedByEnvoy)
        case .caddy, .mesh: nil
        }
    }

    @Test(arguments: DecidingProxy.allCases.filter { $0 != .mesh })
    func `the doctor says what a front changes, and the application sees none of it`(
        proxy: DecidingProxy
    ) throws {
        try play(proxy, isTried: true) { stand in
            func expect(_ says: [String]) throws {
                let result = try stand.scenario.portcullis(
                    "doctor",
                    "--config",
                    stand.scenario.path("portcullis.yaml"),
                    "--through",
                    "http://127.0.0.1:\(stand.port)"
                )
                let lines = result.printed.split(separator: "\n").filter { !$0.hasPrefix(" ") }
                let found = lines.dropLast().map { line in
                    let words = line.split(separator: " ", maxSplits: 2).map {
                        $0.trimmingCharacters(in: .whitespaces)
                    }
                    return "\(words[0]) \(words[2])"
                }
                let faults = found.filter { !$0.hasPrefix("ok ") }
                let remark: Comment = "\(result.printed)\(result.complained)"
                #expect(found.count >= 5, remark)
                expectEqual(faults.count, says.count, remark)
                for (fault, said) in zip(faults, says) { #expect(fault.hasPrefix(said), remark) }
                let isWrong = says.contains { $0.hasPrefix("error") }
                expectEqual(result.status, isWrong ? 1 : 0, remark)
            }
            try expect(Self.findings(proxy))
            if let fault = Self.fault(proxy) {
                try stand.restartFront(fault.edits)
                try expect(fault.says)
            }
            #expect(stand.seen.isEmpty)
        }
    }
}
