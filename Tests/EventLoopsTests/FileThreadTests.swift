import Dispatch
import Expectations
import Glibc
import Testing

@testable import EventLoops

@Suite struct FileThreadTests {
    private static let folder = "/tmp"

    @Test func `what is written is read, in pieces and behind gaps`() throws {
        let files = FileThread()
        let file = try files.open(in: Self.folder)
        defer { files.close(file) }
        try files.write([1, 2, 3], to: file, at: 0)
        try files.write([4, 5], to: file, at: 3)
        try expectEqual(files.read(10, of: file, at: 0), [1, 2, 3, 4, 5])
        try expectEqual(files.read(2, of: file, at: 3), [4, 5])
        #expect(throws: SocketError.self) { try files.read(1, of: file, at: 5) }
    }

    @Test func `a folder that is missing is told with its name`() {
        let files = FileThread()
        #expect(throws: SocketError("open(O_TMPFILE) in /nowhere", code: ENOENT)) {
            try files.open(in: "/nowhere")
        }
    }

    @Test func `a call that stands still costs one wait, and all others fail at once`() throws {
        let files = FileThread(patience: 50_000_000)
        let file = try files.open(in: Self.folder)
        let disk = DispatchSemaphore(value: 0)
        let undone = DispatchSemaphore(value: 0)
        let late = SocketError("pwrite", code: ETIME)
        #expect(throws: late) {
            try files.perform("pwrite") { _ -> Result<Int, SocketError> in
                disk.wait()
                return .success(7)
            } undo: { value in
                if value == 7 { undone.signal() }
            }
        }
        // Not one of these waits for the disk, which would be for ever.
        for _ in 0..<1_000 {
            #expect(throws: late) { try files.write([1], to: file, at: 0) }
        }
        files.close(file)
        disk.signal()
        // What came too late is undone.
        undone.wait()
    }

    @Test func `slow calls may take a second at once, and a tenth of the time`() {
        var budget = FileBudget()
        func isLeft(_ time: UInt64) -> Bool { budget.isLeft(at: time) }
        let start: UInt64 = 1_000_000_000_000
        let millisecond: UInt64 = 1_000_000
        for step in 0..<1_000 { budget.spend(19 * millisecond, at: start + UInt64(step)) }
        #expect(isLeft(start + 1_000))
        for _ in 0..<3 { budget.spend(300 * millisecond, at: start + 1_000) }
        #expect(isLeft(start + 1_000))
        budget.spend(300 * millisecond, at: start + 1_000)
        #expect(!isLeft(start + 1_000))
        // 200 ms over: they are back after 2 s.
        #expect(!isLeft(start + 1_900 * millisecond))
        #expect(isLeft(start + 2_100 * millisecond))
        // However long a call has hung, it is forgiven in 20 s.
        budget.spend(3_600_000 * millisecond, at: start + 2_100 * millisecond)
        #expect(!isLeft(start + 12_000 * millisecond))
        #expect(isLeft(start + 12_200 * millisecond))
    }
}
