import ConfigurationReading
import Expectations
import Foundation
import Logging
import Testing

@testable import Gateway

/// The level of the gateway's own messages.
@Suite struct MessageLogTests {
    /// A party keeps a copy of the log from the start on.
    @Test(arguments: [false, true])
    func `a new level is the level of each copy of the log`(isJournal: Bool) throws {
        let pipe = Pipe()
        let writer = LogWriter(
            descriptor: pipe.fileHandleForWriting.fileDescriptor,
            pendingMax: 1 << 16,
            losses: LogLosses()
        )
        let stream = MessageStream(writer: writer)
        var log = isJournal ? stream.journalLogger(.notice) : stream.logger(.notice)
        let copy = log
        copy.debug("before")
        log.logLevel = .debug
        expectEqual(copy.logLevel, .debug)
        copy.debug("between")
        log.logLevel = .notice
        copy.debug("after")
        writer.drain(until: .now() + .seconds(60))
        try pipe.fileHandleForWriting.close()
        let text = try pipe.fileHandleForReading.readToEnd() ?? Data()
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
        expectEqual(lines.count, 1)
        #expect(lines[0].hasSuffix("between"), "\(lines)")
    }
}
