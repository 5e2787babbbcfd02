import ConfigurationReading
import Expectations
import Foundation
import Testing

/// What protects the files that a verdict rests on, and the process.
@Suite struct ProtectionTests {
    private static let secured = """
        listen: [{ address: "127.0.0.1:0", tls: { certificate: c.pem, key: k.pem } }]
        origins: { o: { servers: ["o:80"] } }
        default: { origin: o, mode: off }
        admin: { address: "0.0.0.0:1" }
        """

    private static func problems(keyMode: UInt16) -> [String] {
        var files = MemoryFiles()
        files.files = ["p.yaml": secured, "c.pem": "-", "k.pem": "-"]
        files.permissions["k.pem"] = keyMode
        return ConfigurationLoader.load("p.yaml", files: files).problems.map(\.text)
    }

    private static let openAdmin = """
        p.yaml:4: warning: admin.address: found 0.0.0.0:1; use a loopback address or a Unix \
        socket, or serves: [metrics, probes]: who reaches it reads rules and counts
        """

    @Test(arguments: [0o644, 0o604, 0o602, 0o601, 0o777] as [UInt16])
    func `a key that every user of the host may read is refused`(mode: UInt16) {
        expectEqual(
            Self.problems(keyMode: mode),
            [
                """
                p.yaml:1: listen[0].tls.key: found a key with mode \(String(mode, radix: 8)), \
                open to every user of this host; use chmod o= k.pem
                """,
                Self.openAdmin,
            ]
        )
    }

    @Test func `a certificate in a key's place may be read by all, a key beside one may not`() {
        func problems(_ key: String) -> [String] {
            var files = MemoryFiles()
            files.files = ["p.yaml": Self.secured, "c.pem": "-", "k.pem": key]
            files.permissions["k.pem"] = 0o644
            return ConfigurationLoader.load("p.yaml", files: files).errors.map(\.text)
        }
        let certificate = "-----BEGIN CERTIFICATE-----\n"
        expectEqual(problems(certificate), [])
        for key in ["PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY"] {
            expectEqual(problems("\(certificate)-----BEGIN \(key)-----\n").count, 1)
        }
    }

    @Test func `a key may be its group's to read, not to write`() {
        for mode in [0o600, 0o400, 0o640, 0o440] as [UInt16] {
            expectEqual(Self.problems(keyMode: mode), [Self.openAdmin])
        }
        expectEqual(
            Self.problems(keyMode: 0o660),
            [
                """
                p.yaml:1: warning: listen[0].tls.key: found a key with mode 660, which its group \
                may replace; use chmod g-w k.pem
                """,
                Self.openAdmin,
            ]
        )
    }

    @Test func `a key that can't be read is refused`() {
        var files = MemoryFiles()
        files.files = ["p.yaml": Self.secured, "c.pem": "-", "k.pem": "-"]
        files.unreadable = ["k.pem"]
        let refused = ConfigurationLoader.load("p.yaml", files: files)
        expectEqual(refused.errors.map(\.found), ["a file that may not be read (k.pem)"])
    }

    @Test(arguments: ["", "-wal", "-shm", ".lock", ".generation", ".socket"])
    func `a store that every user may write is refused, one they may read is told`(
        suffix: String
    ) {
        var files = MemoryFiles()
        let database = "s/keys.db" + suffix
        files.files = [
            "p.yaml": """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: ["o:80"] } }
            default: { origin: o, mode: off }
            store: { sqlite: s/keys.db }
            """,
            database: "-",
        ]
        func text(_ mode: UInt16) -> [String] {
            files.permissions[database] = mode
            return ConfigurationLoader.load("p.yaml", files: files).problems.map(\.text)
        }
        expectEqual(text(0o600), [])
        expectEqual(text(0o660), [])
        expectEqual(
            text(0o644),
            [
                """
                p.yaml:4: warning: store.sqlite: found \(database) with mode 644, so that every \
                user here can read the keys; use chmod 600 \(database)
                """
            ]
        )
        expectEqual(
            text(0o666),
            [
                """
                p.yaml:4: store.sqlite: found \(database) with mode 666, so that every user here \
                can admit keys; use chmod 600 \(database)
                """
            ]
        )
    }

    @Test func `a configuration and rules that every user may write are told`() {
        var files = MemoryFiles()
        files.files = [
            "p.yaml": """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: ["o:80"] } }
            default: { origin: o, mode: off }
            rules: r
            """,
            "r/a.yaml": "- { id: a, match: { path: /a }, mode: off }",
        ]
        files.permissions = ["p.yaml": 0o666, "r": 0o1777, "r/a.yaml": 0o602]
        let loaded = ConfigurationLoader.load("p.yaml", files: files)
        expectEqual(
            loaded.warnings.map(\.text),
            [
                """
                p.yaml:1: warning: found mode 666, so that every user here decides what is \
                enforced; use chmod o-w p.yaml
                """,
                """
                p.yaml:4: warning: rules: found a folder with mode 777, to which every user here \
                can add files; use chmod o-w r
                """,
                """
                r/a.yaml:1: warning: found mode 602, so that every user here decides what is \
                enforced; use chmod o-w r/a.yaml
                """,
            ]
        )
        #expect(loaded.configuration != nil)
    }

    /// Certificates are usually named through links (certbot, Kubernetes), whose own mode is 777.
    @Test func `the mode of a file that a link leads to is the file's`() throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-link-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "key-1.pem").path
        let link = folder.appending(path: "key.pem").path
        try Data([1]).write(to: URL(filePath: file))
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: file)
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "key-1.pem")
        try expectEqual(DiskFiles().permissions(of: file), 0o640)
        try expectEqual(DiskFiles().permissions(of: link), 0o640)
    }

    /// A pipe that nothing writes to kept a reload, and all later ones, waiting for ever.
    @Test(.timeLimit(.minutes(1)))
    func `a pipe without a writer is no file, and one that is written slowly is read`() throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-pipe-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appending(path: "10.yaml").path
        expectEqual(mkfifo(path, 0o600), 0)
        #expect(throws: FileFault.notAFile) {
            try DiskFiles().contents(of: path, limit: 100)
        }
        let pipe = Pipe()
        let reading = pipe.fileHandleForReading.fileDescriptor
        Thread.detachNewThread {
            try? pipe.fileHandleForWriting.write(contentsOf: Data("abc".utf8))
            try? pipe.fileHandleForWriting.close()
        }
        try expectEqual(
            DiskFiles().contents(of: "/dev/fd/\(reading)", limit: 100),
            Array("abc".utf8)
        )
    }

    @Test func `a process has a user, and a group only beside it`() throws {
        func loaded(_ process: String) -> LoadedConfiguration {
            load(
                """
                listen: [{ address: "127.0.0.1:0" }]
                origins: { o: { servers: ["o:80"] } }
                default: { origin: o, mode: off }
                process: \(process)
                """
            )
        }
        let all = loaded("{ user: www-data, group: ssl-cert, core_dumps: on }")
        let settings = try #require(all.configuration).process
        expectEqual(settings.user, "www-data")
        expectEqual(settings.group, "ssl-cert")
        #expect(settings.allowsCoreDumps)
        try expectEqual(#require(loaded("{ user: a }").configuration).process.group, nil)
        expectEqual(
            loaded("{ group: a, core_dumps: maybe }").problems.map(\.text),
            [
                "p.yaml:4: process.core_dumps: found \"maybe\"; use on | off",
                "p.yaml:4: process.group: found it without user; use user beside it",
            ]
        )
        expectEqual(loaded("{ user: 'a b' }").errors.map(\.keyPath), ["process.user"])
    }
}
