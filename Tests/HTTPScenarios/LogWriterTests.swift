import ConfigurationReading
import Expectations
import Foundation
import Glibc
import Logging
import Synchronization
import Testing

@testable import Gateway

extension Scenarios {
    /// Lines of a log on their way to a reader that may not read.
    struct LogWriterTests {
        private final class Notices: Sendable {
            let all = Mutex<[LossReport.Notice]>([])
        }

        /// Writes until a pipe takes nothing more; how much it took.
        private static func fill(_ descriptor: Int32) -> Int {
            let flags = fcntl(descriptor, F_GETFL)
            _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK)
            var filled = 0
            while write(descriptor, "x", 1) == 1 { filled += 1 }
            _ = fcntl(descriptor, F_SETFL, flags)
            return filled
        }

        @Test func `lines that a full pipe does not take are dropped, counted and told of later`()
            throws
        {
            let pipe = Pipe()
            let output = pipe.fileHandleForWriting.fileDescriptor
            let filled = Self.fill(output)
            let losses = LogLosses()
            let notices = Notices()
            losses.watch { notice in notices.all.withLock { $0.append(notice) } }
            let writer = LogWriter(descriptor: output, pendingMax: 100_000, losses: losses)
            let line = [UInt8](repeating: UInt8(ascii: "x"), count: 999) + [UInt8(ascii: "\n")]
            for _ in 0..<400 { writer.write(line) }
            expectEqual(losses.count, 300)
            expectEqual(notices.all.withLock { $0 }, [.began])
            // A reader that takes nothing keeps nobody at the end.
            writer.drain(until: .now() + .milliseconds(10))

            let expected = filled + 100 * line.count
            var read = 0
            while read < expected { read += pipe.fileHandleForReading.availableData.count }
            expectEqual(read, expected)
            writer.drain(until: .now() + .seconds(60))
            expectEqual(notices.all.withLock { $0 }, [.began, .ended(lines: losses.count)])
        }

        /// journald reads each line alone, and gives one without a prefix the priority `info`.
        @Test func `each line of a message to the journal has the message's priority`() throws {
            let pipe = Pipe()
            let output = pipe.fileHandleForWriting.fileDescriptor
            let writer = LogWriter(descriptor: output, pendingMax: 1 << 20, losses: LogLosses())
            let log = MessageStream(writer: writer).journalLogger(.trace)
            log.error("what failed\n  what to do next")
            log.warning("one")
            for level in [Logger.Level.critical, .notice, .info, .debug, .trace] {
                log.log(level: level, "two\nthree")
            }
            writer.drain(until: .now() + .seconds(60))
            try pipe.fileHandleForWriting.close()
            let text = String(
                decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(),
                as: UTF8.self
            )
            let lines = text.split(separator: "\n").map(String.init)
            let priorities = lines.map { $0.prefix(3) }.joined()
            expectEqual(priorities, "<3><3><4><2><2><5><5><5><5><7><7><7><7>")
            expectEqual(lines[1], "<3>  what to do next")
            #expect(lines[0].contains(" error portcullis: "), "\(lines[0])")
        }

        @Test func `a descriptor is the journal where device and inode are those that are named`()
            throws
        {
            let pipe = Pipe()
            let output = pipe.fileHandleForWriting.fileDescriptor
            var facts = stat()
            expectEqual(fstat(output, &facts), 0)
            #expect(Journal.owns(output, "\(facts.st_dev):\(facts.st_ino)"))
            for name in [
                nil, "", ":", "\(facts.st_dev)", "\(facts.st_dev):\(facts.st_ino &+ 1)",
                "\(facts.st_dev &+ 1):\(facts.st_ino)", "\(facts.st_dev):\(facts.st_ino)0",
            ] {
                #expect(!Journal.owns(output, name), "\(name ?? "none")")
            }
            #expect(!Journal.owns(-1, "0:0"))
        }

        @Test func `lines that a loop has dropped count with those of the writer`() {
            let losses = LogLosses()
            let notices = Notices()
            losses.watch { notice in notices.all.withLock { $0.append(notice) } }
            let writer = LogWriter(descriptor: -1, pendingMax: 0, losses: losses)
            writer.write([], dropped: 3)
            writer.write(Array("beyond the limit\n".utf8), dropped: 2)
            expectEqual(losses.count, 6)
            expectEqual(notices.all.withLock { $0 }, [.began])
        }

        @Test func `losses that come and go are told of once in ten seconds`() {
            var report = LossReport()
            let second: UInt64 = 1_000_000_000
            expectEqual(report.wrote(now: 0), .none)
            expectEqual(report.lost(2, now: second), .began)
            expectEqual(report.lost(3, now: second), .none)
            expectEqual(report.wrote(now: 2 * second), .ended(lines: 5))
            expectEqual(report.lost(1, now: 3 * second), .none)
            expectEqual(report.wrote(now: 4 * second), .none)
            expectEqual(report.lost(1, now: 11 * second), .none)
            expectEqual(report.wrote(now: 12 * second), .ended(lines: 2))
            expectEqual(report.lost(1, now: 22 * second), .began)
        }
    }
}
