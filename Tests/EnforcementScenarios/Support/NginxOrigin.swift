import Foundation
import LoopbackKit

/// nginx as an origin, on a socket file: it takes content and answers "ok".
struct NginxOrigin {
    private let child: ChildProcess
    private let path: String

    /// `nil` where there is no nginx.
    init?(_ scenario: Scenario) throws {
        guard let nginx = Scenario.tool("nginx") else { return nil }
        path = scenario.path("nginx.sock")
        child = try scenario.startNginx(
            nginx,
            "nginx",
            http: """
                    log_format row '$request_method $request_uri $content_length '
                        '$http_app_attest_verdict.';
                    access_log /dev/stdout row;
                    server {
                        listen unix:\(path);
                        location / { return 200 "ok\\n"; }
                    }
                """
        )
        _ = try child.wait(for: "start") { _, complained in
            complained.contains("start worker process") || complained.contains("using the")
                ? true : nil
        }
    }

    var address: String { "unix:\(path)" }

    /// What it has seen, a line each: everything that came before a request made here.
    func seen() throws -> [String] {
        let mark = "/mark-\(UUID().uuidString)"
        _ = try HTTPClient(path: path).send("GET", mark)
        let text = try child.wait(for: mark) { printed, _ in
            printed.contains(mark) ? printed : nil
        }
        return text.split(separator: "\n").map(String.init).filter { !$0.contains("/mark-") }
    }
}
