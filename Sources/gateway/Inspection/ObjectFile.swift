internal import ByteCoding
internal import Foundation

/// A file that holds an object, raw or in base64.
package enum ObjectFile {
    /// The most bytes that are read; more are left unread. No object has a tenth of it, so that
    /// what was cut off is refused as malformed.
    package static let bytesMax = 1 << 20

    /// The bytes of a file, or of standard input for `-`. Throws when there is nothing to read;
    /// `place` is what the command line calls the file then.
    package static func bytes(
        _ path: String,
        place: String = "FILE"
    ) throws(UsageError) -> [UInt8] {
        let handle: FileHandle
        if path == "-" {
            handle = .standardInput
        } else {
            do {
                handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            } catch {
                throw UsageError(
                    place,
                    "\"\(path)\" can't be opened; give the path of a file that you may read, "
                        + "or - for standard input"
                )
            }
        }
        do {
            var bytes: [UInt8] = []
            // A pipe gives what is in it, however little: on to the end.
            while bytes.count < bytesMax,
                let more = try handle.read(upToCount: bytesMax - bytes.count), !more.isEmpty
            {
                bytes += more
            }
            return bytes
        } catch {
            throw UsageError(
                place,
                "\"\(path)\" can't be read (is it a folder?); give the path of a file, "
                    + "or - for standard input"
            )
        }
    }

    /// The object in a file: of base64 what it stands for, anything else as it is.
    ///
    /// Every genuine object has bytes that no base64 has, already at its start. In base64 either
    /// alphabet will do, with or without padding, with line breaks and blanks anywhere.
    package static func object(in bytes: [UInt8]) -> [UInt8] {
        let text = bytes.filter { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
        return Base64.decode(text.span) ?? bytes
    }

    /// The object in a file, read. See ``bytes(_:place:)`` and ``object(in:)``.
    package static func object(_ path: String) throws(UsageError) -> [UInt8] {
        object(in: try bytes(path))
    }
}
