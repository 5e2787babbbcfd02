internal import AppAttest
internal import Cryptography
internal import Encodings

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
