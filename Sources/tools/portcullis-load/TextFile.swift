import Foundation
import Glibc
import LoadGenerator
import Signatures

/// Messages for people.
enum DiagnosticOutput {
    static func write(_ text: String) {
        let bytes = Array(text.utf8)
        // If this fails, no channel is left for a report.
        _ = bytes.withUnsafeBytes { Glibc.write(2, $0.baseAddress, $0.count) }
    }

    static var isTerminal: Bool { isatty(2) == 1 }

    /// The columns of the terminal; 80 where it does not say.
    static var columns: Int {
        var size = winsize()
        guard ioctl(2, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}

/// Files that are read and written whole.
enum TextFile {
    /// The most bytes that are read: the most content that is sent.
    private static let readMax = ContentPlan.sizeMax

    static func read(_ path: String) throws(LoadError) -> [UInt8] {
        // At the end of the file there is no data, which is no error: the file is empty.
        guard let file = FileHandle(forReadingAtPath: path),
            let data = try? file.read(upToCount: readMax + 1) ?? Data()
        else { throw LoadError("\(path): can't be read") }
        guard data.count <= readMax else {
            throw LoadError("\(path): has more than \(readMax >> 20) MiB")
        }
        return [UInt8](data)
    }

    /// Replaces a whole file, so that a crash leaves the old one or the new one.
    static func write(_ path: String, _ text: String) throws(LoadError) {
        do {
            try text.write(toFile: path, atomically: true, encoding: .utf8)
        } catch {
            throw LoadError("\(path): can't be written")
        }
    }
}

/// A fleet on disk.
enum FleetFile {
    static func read(_ path: String) throws(LoadError) -> DeviceFleet {
        guard let fleet = DeviceFleet(text: try TextFile.read(path)) else {
            throw LoadError("\(path): is no fleet; `portcullis-load prepare` makes one")
        }
        return fleet
    }
}

extension UnixTime {
    /// The machine's wall clock.
    static var current: UnixTime { UnixTime(seconds: Int64(time(nil))) }
}
