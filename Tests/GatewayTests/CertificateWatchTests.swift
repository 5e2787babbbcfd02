import Expectations
import Foundation
import Testing

@testable import Gateway

/// Transcripts of renewals: what a watch of certificates' files sees, and what follows.
@Suite struct CertificateWatchTests {
    private struct Folder {
        let path = NSTemporaryDirectory() + "portcullis-watch-\(UUID().uuidString)"

        init() throws {
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: true
            )
        }

        /// The stamps of a certificate and a key after they were written with these contents.
        func stamps(_ certificate: String, _ key: String) throws -> CertificateWatch.Stamps {
            let files = [("cert.pem", certificate), ("key.pem", key)].map {
                ("\(path)/\($0.0)", $0.1)
            }
            for (file, content) in files {
                try content.write(toFile: file, atomically: false, encoding: .utf8)
            }
            return CertificateWatch.stamps(files.map(\.0))
        }

        func end() { try? FileManager.default.removeItem(atPath: path) }
    }

    @Test func `a renewed pair is loaded when it has not changed since the last check`() throws {
        let folder = try Folder()
        defer { folder.end() }
        var watch = CertificateWatch(try folder.stamps("old", "old"), 0)
        // Certificate and key are written one after the other.
        let half = try folder.stamps("renewed", "old")
        expectEqual(watch.saw(half), false)
        let whole = try folder.stamps("renewed", "renewed too")
        expectEqual(watch.saw(whole), false)
        expectEqual(watch.saw(whole), true)
        watch.accepted()
        expectEqual(watch.saw(whole), false)
        expectEqual(watch.fault, nil)
    }

    @Test func `a pair that can't be used is counted, and is not tried again before it changes`()
        throws
    {
        let folder = try Folder()
        defer { folder.end() }
        var watch = CertificateWatch(try folder.stamps("old", "old"), 0)
        let wrong = try folder.stamps("renewed", "of another one")
        _ = watch.saw(wrong)
        expectEqual(watch.saw(wrong), true)
        watch.refused("key-mismatch")
        expectEqual(watch.refusals, 1)
        expectEqual(watch.fault, "key-mismatch")
        expectEqual(watch.saw(wrong), false)
        let mended = try folder.stamps("renewed", "the key of that")
        _ = watch.saw(mended)
        expectEqual(watch.saw(mended), true)
        watch.accepted()
        expectEqual(watch.fault, nil)
    }

    @Test func `a file that stays away is reported once, and is no fault when it is back`() throws {
        let folder = try Folder()
        defer { folder.end() }
        let stamps = try folder.stamps("one", "two")
        let (key, files) = (folder.path + "/key.pem", stamps.keys.sorted())
        var watch = CertificateWatch(stamps, 0)
        var without = stamps
        without[key] = nil
        // A renewal may take it away for a moment.
        expectEqual([without, stamps, without].map { watch.missed($0, of: files) }, [[], [], []])
        expectEqual([without, without].map { watch.missed($0, of: files) }, [[], [key]])
        watch.refused("gone")
        expectEqual(watch.missed(without, of: files), [])
        expectEqual(watch.fault, "gone")
        expectEqual(watch.missed(stamps, of: files), [])
        expectEqual(watch.fault, nil)
    }

    @Test func `a file that is gone changes nothing, and a reload forgets a fault`() throws {
        let folder = try Folder()
        defer { folder.end() }
        let stamps = try folder.stamps("one", "two")
        var watch = CertificateWatch(stamps, 0)
        expectEqual(watch.saw([:]), false)
        watch.refused("unreadable")
        watch.loaded(stamps)
        expectEqual(watch.fault, nil)
        expectEqual(watch.saw(stamps), false)
    }
}
