import Foundation
import Glibc
import LoopbackKit

/// HAProxy on a free port.
struct HAProxyProcess {
    let port: UInt16
    private let child: ChildProcess
    private let folder: String

    /// `nil` where there is no HAProxy. `section`: what it does at the port.
    init?(_ section: (UInt16) -> String) throws {
        guard let haproxy = ChildProcess.tool("haproxy") else { return nil }
        let folder = try TemporaryFolder.make()
        // HAProxy can't choose a port by itself; one that is free may be taken a moment later.
        for _ in 0..<10 {
            let port = try LoopbackKit.freePort()
            let file = folder + "/haproxy.cfg"
            let text = """
                defaults
                    timeout connect 10s
                    timeout client 120s
                    timeout server 120s
                \(section(port))

                """
            try text.write(toFile: file, atomically: true, encoding: .utf8)
            let child = try ChildProcess(haproxy, ["-W", "-f", file])
            let isServing = try child.wait(for: "start of HAProxy") { _, complained in
                if complained.contains("cannot bind") { return false }
                return complained.contains("Loading success") ? true : nil
            }
            guard isServing else {
                child.end()
                continue
            }
            (self.port, self.child, self.folder) = (port, child, folder)
            return
        }
        throw ChildProcess.Failure(description: "HAProxy found no port")
    }

    func stop() {
        // Its worker ends with it.
        child.signal(SIGTERM)
        _ = try? child.waitForEnd()
        child.end()
        TemporaryFolder.remove(folder)
    }
}

extension HAProxyProcess {
    /// In TCP mode in front of the gateway. `word`: send-proxy or send-proxy-v2.
    static func front(
        of gateway: UInt16,
        _ word: String,
        options: String = ""
    ) throws -> HAProxyProcess? {
        try HAProxyProcess { port in
            """
            listen front
                mode tcp
                bind 127.0.0.1:\(port)
                server gateway 127.0.0.1:\(gateway) \(word) \(options)
            """
        }
    }

    /// An origin that wants a PROXY header, and answers with the client that it names.
    static func origin() throws -> HAProxyProcess? {
        try HAProxyProcess { port in
            """
            frontend origin
                mode http
                bind 127.0.0.1:\(port) accept-proxy
                http-request return status 200 content-type text/plain lf-string %[src]:%[src_port]
            """
        }
    }
}
