import Foundation
import Glibc
import LoopbackKit

/// HAProxy in TCP mode in front of the gateway, which sends a PROXY header.
struct HAProxyFront {
    /// At which clients reach it.
    let port: UInt16
    private let child: ChildProcess
    private let folder: String

    /// `nil` where there is no HAProxy. `word`: send-proxy or send-proxy-v2.
    init?(before gateway: UInt16, _ word: String, options: String = "") throws {
        guard let haproxy = ChildProcess.tool("haproxy") else { return nil }
        let folder = try TemporaryFolder.make()
        // HAProxy can't choose a port by itself; one that was free a moment ago may be taken.
        for _ in 0..<10 {
            let listener = try LoopbackKit.listening()
            Glibc.close(listener.descriptor)
            let file = folder + "/haproxy.cfg"
            let text = """
                defaults
                    mode tcp
                    timeout connect 10s
                    timeout client 120s
                    timeout server 120s
                listen front
                    bind 127.0.0.1:\(listener.port)
                    server gateway 127.0.0.1:\(gateway) \(word) \(options)

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
            (port, self.child, self.folder) = (listener.port, child, folder)
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
