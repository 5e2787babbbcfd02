import Expectations
import Foundation
import Testing

/// Where the package can't be built, the build says so in one sentence. The gateway is
/// made of the target COpenSSL, whose header says it.
@Suite struct PlatformTests {
    /// The errors of the toolchain's C compiler for the header.
    private func errors(_ options: [String]) throws -> [String] {
        let header = URL(filePath: #filePath).resolvingSymlinksInPath()
            .deletingLastPathComponent().appending(path: "../../Sources/base/COpenSSL/include")
            .appending(path: "COpenSSL.h").standardized
        let compiler = Process()
        compiler.executableURL = URL(filePath: "/usr/bin/env")
        compiler.arguments = ["clang"] + options + ["-fsyntax-only", "-x", "c", header.path]
        let pipe = Pipe()
        compiler.standardError = pipe
        try compiler.run()
        let printed = try pipe.fileHandleForReading.readToEnd() ?? Data()
        compiler.waitUntilExit()
        return String(decoding: printed, as: UTF8.self).split(separator: "\n")
            .filter { $0.contains("error:") }
            .map { String($0.split(separator: "error: ", maxSplits: 1).last ?? "") }
    }

    @Test func `on a system other than Linux the build ends with one sentence`() throws {
        for target in ["arm64-apple-macosx15.0", "x86_64-unknown-windows-msvc"] {
            let errors = try errors(["-target", target])
            expectEqual(errors.count, 1, "\(errors)")
            expectEqual(errors.first?.contains("are supported on Linux only"), true, "\(errors)")
        }
    }

    @Test func `without OpenSSL the build ends with a sentence that names the package`() throws {
        let errors = try errors(["-nostdinc"])
        expectEqual(errors.count, 1, "\(errors)")
        expectEqual(errors.first?.contains("install libssl-dev"), true, "\(errors)")
    }

    @Test func `on Linux with OpenSSL the header is read`() throws {
        try expectEqual(errors([]), [])
    }
}
