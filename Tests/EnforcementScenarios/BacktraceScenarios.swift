import Expectations
import Foundation
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    /// What a crash tells of a program that `deploy/strip` has made small.
    ///
    /// Not under a sanitizer, which takes the crash for a finding and prints in place of Swift.
    @Suite(
        .enabled(if: Scenario.isPossible && Scenario.tool("objcopy") != nil),
        .enabled(if: !Scenario.isSanitized)
    )
    struct Backtraces {
        private func strip(_ scenario: Scenario) throws -> String {
            let program = try #require(Scenario.program)
            let script = URL(filePath: #filePath).deletingLastPathComponent()
                .appending(path: "../../deploy/strip").standardized.path
            let result = try scenario.run(script, [program, scenario.path("release")])
            expectEqual(result.status, 0, "\(result)")
            return scenario.path("release/portcullis")
        }

        /// The backtrace of a program that crashes while it waits for its standard input.
        private func crash(_ program: String, _ scenario: Scenario) throws -> String {
            let settings = "SWIFT_BACKTRACE=enable=yes,color=no,cache=no,threads=crashed"
            let arguments = [settings, program, "inspect", "receipt", "-"]
            let child = try scenario.start("/usr/bin/env", arguments)
            // Only then is the function that reads on its stack.
            let place = "/proc/\(child.identifier)/wchan"
            let reads = eventually {
                ((try? String(contentsOfFile: place, encoding: .utf8)) ?? "").contains("pipe")
            }
            try #require(reads, "it never read")
            child.signal(SIGSEGV)
            return try child.wait(for: "backtrace") { _, complained in
                complained.contains("Backtrace took") ? complained : nil
            }
        }

        /// Found as: the release was 115 MB, most of it debug information that nobody reads there.
        @Test func `a stripped program names functions and lines when its debug file is beside it`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let program = try strip(scenario)
            let before = try #require(Scenario.program)
            let size = { (path: String) in
                try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
            }
            #expect(try size(program) < size(before) * 9 / 10)
            let function = "ObjectFile.bytes"
            let backtrace = try crash(program, scenario)
            #expect(backtrace.contains(function), "\(backtrace)")
            if let symbolizer = Scenario.tool("llvm-symbolizer") {
                let address = try #require(place(of: function, in: backtrace))
                let result = try scenario.run(symbolizer, ["--obj=\(program)", address])
                #expect(result.printed.contains("ObjectFile.swift:"), "\(result)")
            }
            // It is that file from which the names come.
            try FileManager.default.removeItem(atPath: program + ".debug")
            let nameless = try crash(program, scenario)
            #expect(!nameless.contains(function), "\(nameless)")
        }

        /// Where a function of the backtrace is in the program's file.
        private func place(of function: String, in backtrace: String) -> String? {
            let lines = backtrace.split(separator: "\n")
            let number = { (line: Substring?) -> UInt64? in
                guard let line, let start = line.firstRange(of: "0x") else { return nil }
                return UInt64(line[start.upperBound...].prefix(while: \.isHexDigit), radix: 16)
            }
            guard let address = number(lines.first { $0.contains(function) }),
                let base = number(
                    lines.first { $0.contains("–0x") && $0.contains(" portcullis ") }
                ),
                address >= base
            else { return nil }
            return "0x" + String(address - base, radix: 16)
        }
    }
}
