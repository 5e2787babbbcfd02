internal import Encodings
internal import Foundation
internal import KeyAttestation

/// A file with an object, raw or in base64.
package enum ObjectFile {
    /// The most bytes that are read. No object has a tenth of it, so a cut object is refused as
    /// malformed.
    package static let bytesMax = 1 << 20

    /// The most bytes of a file beside the object; the longest is Google's status list.
    package static let wholeBytesMax = StatusList.bytesMax

    /// The bytes of a file beside the object. A part of it would be judged as something else, so a
    /// longer file is refused.
    package static func whole(_ path: String, place: String) throws(UsageError) -> [UInt8] {
        let bytes = try bytes(path, place: place, limit: wholeBytesMax + 1)
        guard bytes.count <= wholeBytesMax else {
            throw UsageError(
                place,
                "\"\(path)\" has more than \(wholeBytesMax >> 20) MiB; give a smaller file"
            )
        }
        return bytes
    }

    /// The bytes of a file, or of standard input for `-`, at most `limit`. Throws when there is
    /// nothing to read; `place` is the command line's name of the file.
    package static func bytes(
        _ path: String,
        place: String = "FILE",
        limit: Int = bytesMax
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
            // A pipe gives its current bytes, however few: read to the end.
            while bytes.count < limit,
                let more = try handle.read(upToCount: limit - bytes.count), !more.isEmpty
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

    /// The object in a file: decoded from base64, or unchanged.
    ///
    /// Every genuine object has bytes at its start that base64 does not have. Base64 may use either
    /// alphabet, with or without padding, with line breaks and blanks anywhere.
    package static func object(in bytes: [UInt8]) -> [UInt8] {
        let text = bytes.filter { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
        return Base64.decode(text.span) ?? bytes
    }

    /// The object in a file. See ``bytes(_:place:limit:)`` and ``object(in:)``.
    package static func object(_ path: String) throws(UsageError) -> [UInt8] {
        object(in: try bytes(path))
    }
}
