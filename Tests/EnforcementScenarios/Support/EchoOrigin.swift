import Foundation
import LoopbackKit

/// An origin in Python that sends back what it gets: none of this project's code reads or writes
/// its messages.
struct EchoOrigin {
    /// Content comes back as it came; in chunks where the path ends so. `GET /seen` lists what was
    /// seen: method, target, bytes of content and verdict.
    private static let script = #"""
        import http.server, json, sys, threading

        seen = []

        class Origin(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def content(self):
                if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length", "0")))
                parts = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                while self.rfile.readline() not in (b"\r\n", b""):
                    pass
                return b"".join(parts)

            def answer(self):
                if self.path == "/seen":
                    body = json.dumps(seen).encode()
                else:
                    body = self.content()
                    seen.append([self.command, self.path, len(body),
                                 self.headers.get("App-Attest-Verdict", "")])
                self.send_response(200)
                self.send_header("Content-Type", "application/octet-stream")
                if self.path.endswith("/chunked"):
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for start in range(0, len(body), 70_000):
                        piece = body[start:start + 70_000]
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.write(b"0\r\n\r\n")
                else:
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            do_GET = do_POST = do_PUT = answer

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
        print("port", server.server_port, flush=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        # Ends with whoever has started it.
        sys.stdin.read()
        """#

    let port: UInt16

    /// `nil` where there is no Python.
    init?(_ scenario: Scenario) throws {
        guard let python = Scenario.tool("python3") else { return nil }
        try scenario.write("origin.py", Self.script)
        let child = try scenario.start(python, [scenario.path("origin.py")])
        port = try child.wait(for: "port") { printed, _ in
            guard printed.hasPrefix("port "), printed.contains("\n") else { return nil }
            return UInt16(printed.dropFirst(5).prefix { $0.isNumber })
        }
    }

    var address: String { "127.0.0.1:\(port)" }

    /// What it has seen, a line each.
    func seen() throws -> [String] {
        let answer = try HTTPClient(port: port).send("GET", "/seen")
        let rows = try JSONSerialization.jsonObject(with: Data(answer.body)) as? [[Any]]
        return (rows ?? []).map { row in row.map { "\($0)" }.joined(separator: " ") }
    }
}
