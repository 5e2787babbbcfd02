internal import Encodings
internal import Signatures

/// The values that a client may have handed to `attestKey` or `generateAssertion` in place of
/// SHA-256 of the client data.
struct ClientDataVariants {
    /// Each mistake with the client data hash it makes, the right one first.
    let hashes: [(mistake: ClientMistake, hash: [UInt8])]

    /// The variants of known client data.
    init(of data: [UInt8]) {
        let hash = SHA256.digest(of: data).array
        var hashes: [(ClientMistake, [UInt8])] = [(.none, hash), (.notHashed, data)]
        hashes += Self.variants(ofHash: hash)
        func add(_ mistake: ClientMistake, _ data: [UInt8]?) {
            if let data { hashes.append((mistake, SHA256.digest(of: data).array)) }
        }
        add(.dataAsBase64, Base64.encode(data))
        add(.dataAsBase64URL, Base64.encodeURL(data))
        add(.dataAsHex, Array(Hex.text(data).utf8))
        add(.dataDecodedFromBase64, Base64.decode(ContiguousArray(data).span))
        add(.dataDecodedFromHex, Hex.decode(String(decoding: data, as: UTF8.self)))
        add(.lineFeedAdded, data + [0x0A])
        add(.lineFeedMissing, data.last == 0x0A ? data.dropLast() : nil)
        add(.carriageReturns, data.flatMap { $0 == 0x0A ? [0x0D, 0x0A] : [$0] })
        add(.jsonCompacted, Self.withoutWhiteSpace(data))
        add(.jsonSlashesEscaped, Self.withSlashesEscaped(data))
        add(.jsonSlashesPlain, Self.withSlashesPlain(data))
        add(.quoted, Self.quoted(data))
        add(.empty, [])
        self.hashes = hashes
    }

    /// The variants of a client data hash, where the data itself is unknown.
    init(ofHash hash: [UInt8]) {
        hashes = [(.none, hash)] + Self.variants(ofHash: hash)
    }

    private static func variants(ofHash hash: [UInt8]) -> [(ClientMistake, [UInt8])] {
        let hex = Array(Hex.text(hash).utf8)
        let base64 = Base64.encode(hash)
        return [
            (.hashedTwice, SHA256.digest(of: hash).array),
            (.hashAsHex, hex),
            (.hashAsBase64, base64),
            (.hashOfHexHash, SHA256.digest(of: hex).array),
            (.hashOfBase64Hash, SHA256.digest(of: base64).array),
        ]
    }

    /// Removes white space between tokens of JSON and leaves strings as they are.
    private static func withoutWhiteSpace(_ data: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var isInString = false
        var isEscaped = false
        for byte in data {
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
            } else if [0x20, 0x09, 0x0A, 0x0D].contains(byte) {
                continue
            } else if byte == UInt8(ascii: "\"") {
                isInString = true
            }
            result.append(byte)
        }
        return result
    }

    private static func withSlashesEscaped(_ data: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        for byte in data {
            if byte == UInt8(ascii: "/"), result.last != UInt8(ascii: "\\") {
                result.append(UInt8(ascii: "\\"))
            }
            result.append(byte)
        }
        return result
    }

    private static func withSlashesPlain(_ data: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        for byte in data {
            if byte == UInt8(ascii: "/"), result.last == UInt8(ascii: "\\") { result.removeLast() }
            result.append(byte)
        }
        return result
    }

    private static func quoted(_ data: [UInt8]) -> [UInt8] {
        let quotation = UInt8(ascii: "\"")
        let escaped = data.flatMap { byte in
            byte == quotation || byte == UInt8(ascii: "\\")
                ? [UInt8(ascii: "\\"), byte] : [byte]
        }
        return [quotation] + escaped + [quotation]
    }
}
