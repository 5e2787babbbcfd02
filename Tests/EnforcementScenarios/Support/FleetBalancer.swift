import Foundation
import LoopbackKit
import TestSupport

/// Another project's load balancer before two gateways, with the example of `deploy/docs/fleet.md`
/// and other addresses.
enum FleetBalancer: String, CaseIterable, Sendable {
    case haproxy, nginx

    /// Starts it and waits until it serves.
    ///
    /// - Returns: its port; `nil` where the program is absent, which was said.
    func start(_ scenario: Scenario, before gateways: [UInt16]) throws -> UInt16? {
        guard let program = Scenario.tool(rawValue) else { return nil }
        var example = try example()
        for (number, port) in gateways.enumerated() {
            let place = "10.0.0.\(number + 1):8080"
            guard example.contains(place) else {
                throw ChildProcess.Failure(description: "no \(place) in the example")
            }
            example = example.replacing(place, with: "127.0.0.1:\(port)")
        }
        // Neither can choose a port by itself; one that is free may be taken a moment later.
        for _ in 0..<10 {
            let port = try LoopbackKit.freePort()
            let child = try start(program, scenario, example, port)
            let isServing = try child.wait(for: "start of \(rawValue)") { printed, complained in
                let text = printed + complained
                if text.contains("bind() to") || text.contains("cannot bind") { return false }
                let isUp = text.contains("polling mechanism") || text.contains("using the")
                return isUp ? true : nil
            }
            if isServing {
                // HAProxy says so before it listens.
                let isListening = eventually { (try? Wire(port: port)) != nil }
                if isListening { return port }
            }
            child.end()
        }
        throw ChildProcess.Failure(description: "\(rawValue) found no port")
    }

    /// What the text says between the fences of this language.
    private func example() throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../deploy/docs/fleet.md").standardized
        let text = try String(contentsOf: root, encoding: .utf8)
        let parts = text.components(separatedBy: "```\(rawValue)\n")
        guard parts.count == 2, let end = parts[1].range(of: "```") else {
            throw ChildProcess.Failure(description: "no example of \(rawValue)")
        }
        return String(parts[1][..<end.lowerBound])
    }

    private func start(
        _ program: String,
        _ scenario: Scenario,
        _ example: String,
        _ port: UInt16
    ) throws -> ChildProcess {
        switch self {
        case .haproxy:
            try scenario.write(
                "balancer.cfg",
                """
                defaults
                    mode http
                    timeout connect 5s
                    timeout client 60s
                    timeout server 60s
                frontend front
                    bind 127.0.0.1:\(port)
                    default_backend portcullis
                \(example)
                """
            )
            return try scenario.start(program, ["-db", "-V", "-f", "balancer.cfg"])
        case .nginx:
            return try scenario.startNginx(
                program,
                "balancer",
                http: """
                        access_log off;
                    \(example)
                        server {
                            listen 127.0.0.1:\(port);
                            location / {
                                proxy_pass http://portcullis;
                                proxy_http_version 1.1;
                                proxy_set_header Connection "";
                            }
                        }
                    """
            )
        }
    }
}
