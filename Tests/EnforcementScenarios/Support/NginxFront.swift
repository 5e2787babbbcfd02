import Foundation
import LoopbackKit

/// nginx as a proxy in front of the gateway, which appends the client's address to what the client
/// says.
struct NginxFront {
    /// At which clients reach it.
    let port: UInt16

    /// `nil` where there is no nginx. `forwarded`: it writes Forwarded instead of X-Forwarded-For.
    init?(_ scenario: Scenario, before gateway: GatewayProcess, forwarded: Bool) throws {
        guard let nginx = Scenario.tool("nginx") else { return nil }
        let field =
            forwarded
            ? #"Forwarded "$http_forwarded, for=$remote_addr;proto=http""#
            : "X-Forwarded-For $proxy_add_x_forwarded_for"
        // nginx can't choose a port by itself; one that is free may be taken a moment later.
        for _ in 0..<10 {
            let port = try LoopbackKit.freePort()
            let child = try Self.start(nginx, scenario, port, gateway.port, field)
            let isServing = try child.wait(for: "start of nginx") { _, complained in
                if complained.contains("bind() to") { return false }
                return complained.contains("using the") ? true : nil
            }
            guard isServing else { continue }
            self.port = port
            return
        }
        throw ChildProcess.Failure(description: "nginx found no port")
    }

    private static func start(
        _ nginx: String,
        _ scenario: Scenario,
        _ port: UInt16,
        _ gateway: UInt16,
        _ field: String
    ) throws -> ChildProcess {
        try scenario.startNginx(
            nginx,
            "front-\(port)",
            http: """
                    access_log off;
                    client_max_body_size 64m;
                    server {
                        listen 127.0.0.1:\(port);
                        location / {
                            proxy_pass http://127.0.0.1:\(gateway);
                            proxy_http_version 1.1;
                            proxy_set_header Connection "";
                            proxy_set_header \(field);
                        }
                    }
                """
        )
    }
}
