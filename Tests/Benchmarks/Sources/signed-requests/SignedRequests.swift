import AppAttest
import Cryptography
import Dispatch
import Encodings
import Foundation
import RequestBinding
import SoftwareAuthenticator

/// Signs the requests of the comparison beforehand, so that the client only has to send them.
///
/// Writes into a folder: `keys.jsonl`, for `portcullis keys import`; `requests.tsv`, key id and
/// assertion of each request, in an order in which every key's counter grows and no key comes twice
/// in a row; `uploads.tsv`, key id, assertion and Content-Digest of each upload of zeros.
@main
enum SignedRequests {
    private static let usage = """
        usage: signed-requests [--android] FOLDER KEYS ROUNDS METHOD TARGET
                               UPLOADS OCTETS UPLOAD-TARGET

          each of KEYS keys signs ROUNDS requests METHOD TARGET without content, and one more key
          signs UPLOADS requests PUT UPLOAD-TARGET with OCTETS zeros;
          --android makes them keys of Android phones

        usage: signed-requests --sign KEY METHOD TARGET CHALLENGE

          prints key id and assertion of one request without content, by a key that has signed none

        """
    private static let now = UnixTime(seconds: 1_790_000_000)

    static func main() throws {
        var words = CommandLine.arguments.dropFirst()
        if words.first == "--sign" { return sign(Array(words.dropFirst())) }
        let isAndroid = words.first == "--android"
        if isAndroid { words.removeFirst() }
        let device = isAndroid ? phone : iPhone
        guard words.count == 8, let folder = words.first else { return fail() }
        let rest = Array(words.dropFirst())
        guard let keyCount = Int(rest[0]), let rounds = Int(rest[1]), keyCount > 0, rounds > 0,
            let uploads = Int(rest[4]), let bytes = Int(rest[5]), uploads >= 0, bytes > 0
        else { return fail() }
        let url = URL(filePath: folder)
        // Before they sign, so that the store knows them with a counter of 0.
        let keys = (0..<keyCount).map { device.makeKey(seed: Array("key \($0)".utf8)) }
        let uploader = device.makeKey(seed: Array("upload".utf8))
        let lines = (keys + [uploader]).map { $0.importLine(as: .production) + "\n" }
        try write(lines, url, "keys.jsonl")
        try write(requests(keys, rounds, rest[2], rest[3]), url, "requests.tsv")
        try write(self.uploads(uploader, uploads, bytes, rest[6]), url, "uploads.tsv")
    }

    private static let authority = SoftwareAuthority(seed: Array("benchmarks".utf8), madeAt: now)
    private static let iPhone = SoftwareDevice(
        authority: authority,
        appID: "TEAM123456.com.example.bench",
        environment: .production,
        shape: .beforeTwentySeven
    )
    private static let phone = SoftwareDevice(
        authority: authority,
        package: "com.example.bench",
        phone: SoftwarePhone()
    )

    private static func sign(_ words: [String]) {
        guard words.count == 4 else { return fail() }
        var key = iPhone.makeKey(seed: Array("key \(words[0])".utf8))
        let request = SoftwareKey.Request(method: words[1], target: words[2], challenge: words[3])
        let proof = key.proof(of: request, signing: .lines(.all, headers: []))
        print(proof.keyID, proof.assertion)
    }

    private static func fail() {
        print(usage, terminator: "")
        exit(1)
    }

    private static func write(_ lines: [String], _ folder: URL, _ name: String) throws {
        try Data(lines.joined().utf8).write(to: folder.appending(path: name))
    }

    /// On all cores; each signs for keys of its own.
    private static func requests(
        _ keys: [SoftwareKey],
        _ rounds: Int,
        _ method: String,
        _ target: String
    ) -> [String] {
        let hash = SHA256.digest(of: clientData([.method, .target], method, target, [])).array
        var lines = [String](repeating: "", count: keys.count * rounds)
        lines.withUnsafeMutableBufferPointer { buffer in
            // `nonisolated(unsafe)`: each iteration writes the places of its own key.
            nonisolated(unsafe) let buffer = buffer
            DispatchQueue.concurrentPerform(iterations: keys.count) { number in
                var key = keys[number]
                for round in 0..<rounds {
                    let assertion = key.assertionText(clientDataHash: hash)
                    buffer[round * keys.count + number] =
                        "\(key.keyID.base64)\t\(String(decoding: assertion, as: UTF8.self))\n"
                }
            }
        }
        return lines
    }

    private static func uploads(
        _ key: SoftwareKey,
        _ count: Int,
        _ bytes: Int,
        _ target: String
    ) -> [String] {
        guard count > 0 else { return [] }
        let zeros = [UInt8](repeating: 0, count: min(bytes, 1 << 20))
        var stream = SHA256.Stream()
        var left = bytes
        while left > 0 {
            let size = min(left, zeros.count)
            stream.update(zeros.span.extracting(0..<size))
            left -= size
        }
        let digest = stream.digest().array
        let data = clientData([.method, .target, .body], "PUT", target, digest)
        var key = key
        return (0..<count).map { _ in
            let hash = SHA256.digest(of: data).array
            let assertion = String(decoding: key.assertionText(clientDataHash: hash), as: UTF8.self)
            return "\(key.keyID.base64)\t\(assertion)\tsha-256=:\(Base64.text(digest)):\n"
        }
    }

    private static func clientData(
        _ parts: SignedParts,
        _ method: String,
        _ target: String,
        _ digest: [UInt8]
    ) -> [UInt8] {
        RequestLines.clientData(
            parts,
            of: RequestLines.Request(
                method: method,
                target: target,
                digest: digest
            ),
            challenge: nil
        )
    }
}
