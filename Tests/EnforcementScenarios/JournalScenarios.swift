import Expectations
import Foundation
import Glibc
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    /// Lines for the journal of systemd, which reads a priority at the start of each.
    @Suite struct JournalLines {
        /// Starts a program with a variable that names one of its standard streams, as systemd
        /// does it, or another stream.
        private static func naming(_ stream: String) -> [String] {
            // A substitution has another standard output.
            let name = "$(stat -L -c %d:%i \(stream))"
            let script = "exec 3>&1; export JOURNAL_STREAM=\(name); exec 3>&-; "
            return ["/bin/sh", "-c", script + #"exec "$0" "$@""#]
        }

        private static let output = naming("/proc/self/fd/3")
        private static let errors = naming("/proc/self/fd/2")
        private static let other = naming("/dev/null")

        private struct Written {
            let access: [String]
            let messages: [String]
        }

        /// Lines of a gateway that serves a request, refuses a reload and ends.
        private func written(_ outer: [String]) throws -> Written {
            let stand = try Stand { try $0.serve(within: outer) }
            defer { stand.end() }
            let client = stand.gateway.client()
            for number in 0..<3 {
                try expectEqual(client.send("GET", "/journal/\(number)").status, 200)
            }
            let file = stand.scenario.path("portcullis.yaml")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            try stand.scenario.write("portcullis.yaml", text + "\nunheard: 1\nof: 2\n")
            stand.gateway.child.signal(SIGHUP)
            let isRefused = eventually { stand.gateway.child.complained.contains("unheard") }
            #expect(isRefused)
            try stand.stop()
            return Written(
                access: stand.gateway.child.printed.split(separator: "\n").map(String.init),
                messages: stand.gateway.child.complained.split(separator: "\n").map(String.init)
            )
        }

        private static func isMarked(_ line: String) -> Bool {
            line.prefixMatch(of: /<[0-7]>/) != nil
        }

        @Test func `where standard error is the journal, each line of a message has a priority`()
            throws
        {
            let written = try written(Self.errors)
            #expect(written.messages.count > 3)
            for line in written.messages { #expect(Self.isMarked(line), "\(line)") }
            for (text, priority) in [
                ("unheard: ", "<4>"), (" of: ", "<4>"), ("reload refused", "<3>"),
            ] {
                let line = written.messages.first { $0.contains(text) }
                expectEqual(line?.prefix(3).description, priority, "\(written.messages)")
            }
            expectEqual(written.messages.contains { $0.hasPrefix("<5>") }, true)
            #expect(written.access.count >= 3)
            for line in written.access { #expect(line.hasPrefix("{"), "\(line)") }
        }

        @Test func `where standard output is the journal, each line of the access log is info`()
            throws
        {
            let written = try written(Self.output)
            #expect(written.access.count >= 3)
            for line in written.access { #expect(line.hasPrefix("<6>{"), "\(line)") }
            for line in written.messages { #expect(!Self.isMarked(line), "\(line)") }
        }

        @Test func `where the journal is another stream, no line has a priority`() throws {
            let written = try written(Self.other)
            for line in written.access + written.messages {
                #expect(!Self.isMarked(line), "\(line)")
            }
        }

        @Test func `what a unit's check finds has its priority in the journal`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: "[]")
            let file = scenario.path("portcullis.yaml")
            let program = try #require(Scenario.program)
            func check(_ outer: [String]) throws -> [String] {
                let words = outer.dropFirst() + [program, "check", file]
                let result = try scenario.run(outer[0], Array(words))
                return result.printed.split(separator: "\n").map(String.init)
            }
            let fine = try check(Self.output)
            #expect(fine.count > 3)
            for line in fine { #expect(line.hasPrefix("<5>") || line.hasPrefix("<4>"), "\(line)") }
            let text = try String(contentsOfFile: file, encoding: .utf8)
            try scenario.write("portcullis.yaml", text + "\nunheard: 1\n")
            let wrong = try check(Self.output)
            let named = wrong.filter { $0.contains("unheard") || $0.contains("refused") }
            expectEqual(named.count, 2, "\(wrong)")
            for line in named { #expect(line.hasPrefix("<3>"), "\(line)") }
            for line in try check(Self.other) { #expect(!Self.isMarked(line), "\(line)") }
        }
    }
}
