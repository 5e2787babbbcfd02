import Foundation
import Glibc

/// The process that listens on a TCP port, as /proc shows it: the own user's, or, to root, any.
struct PortHolder {
    private let process: Int32
    private let name: String

    /// As a message shows it: `portcullis (process 1234)`.
    var text: String { "\(name) (process \(process))" }

    /// Whether it is this program, in this process or another one.
    var isGateway: Bool { name == "portcullis" }
    /// Whether it is systemd, which holds addresses for socket activation.
    var isServiceManager: Bool { name == "systemd" }

    /// How often /proc is read: it is no snapshot, and may miss what is there while other sockets
    /// and descriptors come and go.
    private static let attempts = 5

    /// `nil` when no process is found, or the one that listens belongs to another user.
    init?(listeningOn port: UInt16) {
        for _ in 0..<Self.attempts {
            guard let found = Self.holder(of: port) else { continue }
            process = found
            name = Self.lines("/proc/\(found)/comm").first ?? "a process"
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

    // A process may end while it is looked at, and those of other users can't be looked into. Both
    // only mean that the holder's name is not known.

    private static func lines(_ file: String) -> [String] {
        // A file of /proc gives a page at a time and says that its size is 0.
        // String(contentsOfFile:) stops behind the first page, which has some 26 sockets.
        guard let handle = FileHandle(forReadingAtPath: file), let data = try? handle.readToEnd()
        else { return [] }
        return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    private static func entries(_ folder: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    }

    private static func link(_ path: String) -> String {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: path)) ?? ""
    }
}
