internal import AppAttest
internal import Cryptography
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

/// The text of one option, and its values by type.
struct OptionText {
    /// The option, as it is written.
    let name: String
    let text: String

    init(_ name: String, _ text: String) {
        self.name = name
        self.text = text
    }

    /// Base64 in either alphabet.
    func bytes() throws(UsageError) -> [UInt8] {
        guard let bytes = Base64.decode(text), !bytes.isEmpty else {
            throw UsageError(name, "\"\(text)\" is not base64; give the bytes in base64")
        }
        return bytes
    }

    func keyID() throws(UsageError) -> KeyID {
        let bytes = try bytes()
        guard let keyID = KeyID(bytes: bytes) else {
            throw UsageError(
                name,
                "\(bytes.count) bytes, and a key id has 32; give the text that "
                    + "DCAppAttestService gave the app, 44 characters of base64"
            )
        }
        return keyID
    }

    func publicKey() throws(UsageError) -> P256PublicKey {
        let bytes = try bytes()
        guard let key = P256PublicKey(x963: bytes) else {
            throw UsageError(
                name,
                "\(bytes.count) bytes that are no point of P-256; give base64 of the X9.62 "
                    + "point, 65 bytes that begin with 04"
            )
        }
        return key
    }

    func environment() throws(UsageError) -> AttestationEnvironment {
        guard let environment = AttestationEnvironment(rawValue: text) else {
            throw UsageError(name, "\"\(text)\" is none; use production or development")
        }
        return environment
    }

    /// RFC 3339, or the word `now`.
    func time(now: UnixTime) throws(UsageError) -> UnixTime {
        if text == "now" { return now }
        let upper = text.uppercased()
        if let time = UnixTime(iso8601: upper) { return time }
        if let time = Self.timeWithOffset(upper) { return time }
        throw UsageError(name, "\"\(text)\" is no time; write it as 2026-04-20T10:00:00Z, or now")
    }

    /// `…±hh:mm`, which RFC 3339 allows instead of Z.
    private static func timeWithOffset(_ text: String) -> UnixTime? {
        let offset = Array(text.suffix(6))
        guard offset.count == 6, offset[0] == "+" || offset[0] == "-", offset[3] == ":",
            offset[1...2].allSatisfy(\.isNumber), offset[4...5].allSatisfy(\.isNumber),
            let hours = Int64(String(offset[1...2])), let minutes = Int64(String(offset[4...5])),
            hours < 24, minutes < 60,
            let local = UnixTime(iso8601: text.dropLast(6) + "Z")
        else { return nil }
        let seconds = hours * 3_600 + minutes * 60
        return local.advanced(bySeconds: offset[0] == "+" ? -seconds : seconds)
    }

    /// A whole number with a unit: `300s`, `5m`, `2h`, `1d`.
    func seconds() throws(UsageError) -> Int64 {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
        guard let unit = text.last.flatMap({ units[$0] }), let count = UInt32(text.dropLast())
        else {
            throw UsageError(
                name,
                "\"\(text)\" is no duration; write a whole number and s, m, h or d, such as 5m"
            )
        }
        return Int64(count) * unit
    }

    /// The App IDs of a repeatable option.
    static func appIDs(_ texts: [String]) throws(UsageError) -> [String] {
        guard !texts.isEmpty, !texts.contains("") else {
            throw UsageError("--app-id", "is missing; give prefix, full stop and bundle identifier")
        }
        return texts
    }

    /// The certificates of a PEM file in place of those that are built in.
    static func roots(
        pem bytes: [UInt8]?,
        otherwise roots: [X509Certificate]
    ) throws(UsageError) -> [X509Certificate] {
        guard let bytes else { return roots }
        do throws(X509CertificateError) {
            return try X509Certificate.certificates(pem: String(decoding: bytes, as: UTF8.self))
        } catch {
            throw UsageError(
                "--root",
                "\(error.detail); give a file with certificates in PEM, each between "
                    + "BEGIN CERTIFICATE and END CERTIFICATE"
            )
        }
    }
}
