import Foundation
import LoopbackKit

/// Somebody else's proxy, which asks the gateway for decisions, with its example of
/// `deploy/decisions` and other addresses.
enum DecidingProxy: String, CaseIterable, Sendable {
    case nginx, caddy, haproxy, traefik, envoy
    /// Envoy that asks over gRPC.
    case envoyGRPC = "envoy-grpc"
    /// Envoy as meshes configure it: it asks over gRPC, has no raw headers, and deletes nothing.
    case mesh

    var isEnvoy: Bool { [.envoy, .envoyGRPC, .mesh].contains(self) }

    private var program: String { isEnvoy ? "envoy" : rawValue }

    /// How it asks.
    var form: String {
        switch self {
        case .nginx, .haproxy: "auth_request"
        case .caddy, .traefik: "forward_auth"
        case .envoy: "ext_authz"
        case .envoyGRPC, .mesh: "ext_authz_grpc"
        }
    }

    /// Whether it sends the content with its question.
    var sendsContent: Bool {
        switch self {
        case .nginx, .caddy: false
        case .haproxy, .traefik, .envoy, .envoyGRPC, .mesh: true
        }
    }

    /// The files of the example; the first is the one that it is started with.
    private var files: [String] {
        switch self {
        case .nginx: ["nginx.conf"]
        case .caddy: ["Caddyfile"]
        case .haproxy: ["haproxy.cfg", "haproxy.lua"]
        case .traefik: ["traefik.yaml", "traefik-routes.yaml"]
        case .envoy: ["envoy.yaml"]
        case .envoyGRPC, .mesh: ["envoy-grpc.yaml"]
        }
    }

    /// Where the examples say that everybody is.
    struct Ports {
        let decisions: UInt16
        let gateway: UInt16
        let application: UInt16
    }

    /// Starts it and waits until it serves.
    ///
    /// - edits: what its example gets wrong, by the text that has it.
    /// - Returns: its port; `nil` where the program is absent, which was said.
    func start(
        _ scenario: Scenario,
        _ ports: Ports,
        edits: [(old: String, new: String)] = []
    ) throws -> (port: UInt16, child: ChildProcess)? {
        guard let program = Scenario.tool(program) else { return nil }
        // None of them can choose a port by itself; one that is free may be taken a moment later.
        for _ in 0..<10 {
            let port = try LoopbackKit.freePort()
            try write(scenario, port, ports, edits)
            let child = try run(program, scenario)
            let isServing: Bool = try child.wait(for: "start of \(rawValue)") {
                printed,
                complained in
                let text = printed + complained
                if text.contains("bind() to") || text.contains("cannot bind")
                    || text.contains("address already in use")
                {
                    return false
                }
                return text.contains(sign) ? true : nil
            }
            guard isServing else {
                child.end()
                continue
            }
            return (port, child)
        }
        throw ChildProcess.Failure(description: "\(rawValue) found no port")
    }

    /// Copies the example. Nothing but the addresses is changed, and what the program tells of
    /// itself.
    private func write(
        _ scenario: Scenario,
        _ port: UInt16,
        _ ports: Ports,
        _ edits: [(old: String, new: String)]
    ) throws {
        let folder = try Self.examples()
        for file in files {
            var text = try String(contentsOf: folder.appending(path: file), encoding: .utf8)
            for (old, new) in edits { text = text.replacing(old, with: new, maxReplacements: 1) }
            for (number, real) in [
                ("9000", ports.decisions), ("8080", ports.gateway), ("8081", ports.application),
                ("8000", port),
            ] {
                text = text.replacing("127.0.0.1:\(number)", with: "127.0.0.1:\(real)")
                text = text.replacing("http://:\(number)", with: "http://:\(real)")
                text = text.replacing("port_value: \(number) ", with: "port_value: \(real) ")
            }
            if self == .mesh {
                text.replace("encode_raw_headers: true", with: "encode_raw_headers: false")
                let removal = try Regex("request_headers_to_remove:\n( +- .*\n)+")
                text.replace(removal, with: "")
            }
            if file == "traefik.yaml" { text += "log:\n  level: DEBUG\n" }
            try scenario.write(file, text)
        }
    }

    private static func examples() throws -> URL {
        var folder = URL(filePath: #filePath).resolvingSymlinksInPath()
        while folder.path != "/" {
            folder.deleteLastPathComponent()
            let examples = folder.appending(path: "deploy/decisions")
            if FileManager.default.fileExists(atPath: examples.path) { return examples }
        }
        throw ChildProcess.Failure(description: "no deploy/decisions above \(#filePath)")
    }

    /// The text of a file of `deploy/decisions`.
    static func example(_ file: String) throws -> String {
        try String(contentsOf: examples().appending(path: file), encoding: .utf8)
    }

    /// For programs in Go, which collect garbage several times while they start.
    private static let collection = "GOGC=400"

    private func run(_ program: String, _ scenario: Scenario) throws -> ChildProcess {
        switch self {
        case .nginx:
            let http = "    access_log off;\n    include \(scenario.path("nginx.conf"));"
            return try scenario.startNginx(program, "deciding", http: http)
        case .caddy:
            // It writes into folders below the home of its user.
            let folder = scenario.folder.path
            let homes = ["XDG_CONFIG_HOME=\(folder)", "XDG_DATA_HOME=\(folder)"]
            let arguments = ["run", "--config", "Caddyfile", "--adapter", "caddyfile"]
            let words = homes + [Self.collection, program] + arguments
            return try scenario.start("/usr/bin/env", words)
        case .haproxy: return try scenario.start(program, ["-db", "-V", "-f", "haproxy.cfg"])
        case .traefik:
            let words = [Self.collection, program, "--configfile=traefik.yaml"]
            return try scenario.start("/usr/bin/env", words)
        case .envoy, .envoyGRPC, .mesh:
            let arguments = ["--disable-hot-restart", "--concurrency", "1", "-c", files[0]]
            return try scenario.start(program, arguments)
        }
    }

    /// What it prints when it serves.
    private var sign: String {
        switch self {
        case .nginx: "using the"
        case .caddy: "serving initial configuration"
        case .haproxy: "polling mechanism"
        case .traefik: "Configuration received"
        case .envoy, .envoyGRPC, .mesh: "starting main dispatch loop"
        }
    }
}
