import Foundation
import Glibc

/// The process that listens on a TCP port, or a gateway of the same configuration, from /proc. It
/// finds processes of the same user; root finds all.
struct PortHolder {
    private let process: Int32
    private let name: String

    /// The text for messages: `portcullis (process 1234)`.
    var text: String { "\(name) (process \(process))" }

    /// Whether the holder is this program, in this process or another one.
    var isGateway: Bool { name == "portcullis" }
    /// Whether the holder is systemd, which holds addresses for socket activation.
    var isServiceManager: Bool { name == "systemd" }

    /// The configuration file of a gateway, without links; `nil` where its command line has none.
    var configuration: String? { isGateway ? Self.configuration(of: process) : nil }
    /// Whether the holder is a gateway of this process's configuration, such as one that drains.
    var isPredecessor: Bool {
        configuration.map { $0 == Self.configuration(of: getpid()) } ?? false
    }

    /// A gateway that was started with the configuration of this process; `nil` when there is none.
    static func predecessor() -> PortHolder? {
        guard configuration(of: getpid()) != nil else { return nil }
        let others = entries("/proc").compactMap { Int32($0) }.filter { $0 != getpid() }
        return others.lazy.map(PortHolder.init(process:)).first(where: \.isPredecessor)
    }

    /// The advice where a gateway of the same configuration has the port.
    var advice: String {
        """
        If it drains, wait until it has ended, `timeouts.drain` at most, and start again. \
        `portcullis upgrade` replaces a gateway without that; HUP has one read its configuration \
        again.
        """
    }

    private init(process: Int32) {
        self.process = process
        name = Self.lines("/proc/\(process)/comm").first ?? "a process"
    }

    /// A path without links, relative to a process's folder.
    static func resolved(_ path: String, in folder: String) -> String {
        let base = URL(filePath: folder, directoryHint: .isDirectory)
        return URL(filePath: path, relativeTo: base).standardizedFileURL
            .resolvingSymlinksInPath().path
    }

    private static func configuration(of process: Int32) -> String? {
        let words = text("/proc/\(process)/cmdline").split(separator: "\0").map(String.init)
        guard let serve = words.firstIndex(of: "serve"),
            let word = words[(serve + 1)...].first(where: {
                !$0.hasPrefix("-") || $0.hasPrefix("--config=")
            })
        else { return nil }
        let file = word.hasPrefix("-") ? String(word.dropFirst("--config=".count)) : word
        return resolved(file, in: link("/proc/\(process)/cwd"))
    }

    /// The number of reads of /proc. It is no snapshot, and may miss entries while other sockets
    /// and descriptors come and go.
    private static let attempts = 5

    /// `nil` when no process is found, or when the listening one belongs to another user.
    init?(listeningOn port: UInt16) {
        for _ in 0..<Self.attempts {
            guard let found = Self.holder(of: port) else { continue }
            self.init(process: found)
            return
        }
        return nil
    }

    private static func holder(of port: UInt16) -> Int32? {
        let links = Set(listeners(on: port).map { "socket:[\($0)]" })
        guard !links.isEmpty else { return nil }
        return entries("/proc").compactMap { Int32($0) }.first { process in
            entries("/proc/\(process)/fd").contains { descriptor in
                links.contains(link("/proc/\(process)/fd/\(descriptor)"))
            }
        }
    }

    /// The inodes of sockets that listen on the port (proc(5), /proc/net/tcp).
    private static func listeners(on port: UInt16) -> [String] {
        ["/proc/net/tcp", "/proc/net/tcp6"].flatMap(lines).compactMap { line in
            // sl, local address, remote address, state, …; the inode is the tenth.
            let words = line.split(separator: " ")
            guard words.count > 9, words[3] == "0A",
                let text = words[1].split(separator: ":").last, UInt16(text, radix: 16) == port
            else { return nil }
            return String(words[9])
        }
    }

    // A process may end while it is inspected, and those of other users can't be inspected. Both
    // only mean that the holder's name is unknown.

    private static func lines(_ file: String) -> [String] {
        text(file).split(separator: "\n").map(String.init)
    }

    private static func text(_ file: String) -> String {
        // A file of /proc gives one page at a time and reports size 0. String(contentsOfFile:)
        // stops after the first page, which has some 26 sockets.
        guard let handle = FileHandle(forReadingAtPath: file), let data = try? handle.readToEnd()
        else { return "" }
        return String(decoding: data, as: UTF8.self)
    }

    private static func entries(_ folder: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    }

    private static func link(_ path: String) -> String {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: path)) ?? ""
    }
}
