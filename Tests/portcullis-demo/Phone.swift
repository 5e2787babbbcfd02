import AppAttest
import Cryptography
import Encodings
import HTTPWire
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator

/// The app's side: what an app does with DCAppAttestService or with Android's keystore, with a
/// software key in its place.
struct Phone {
    /// The App ID of the story.
    static let appID = "DEMO123456.com.example.shop"
    /// The Android app's name.
    static let package = "com.example.shop"
    static let endpoints = "/.well-known/app-attest"

    /// Its key, with the counter in it.
    var key: SoftwareKey
    private let port: UInt16

    /// Its key id in base64.
    var keyID: String { key.keyID.base64 }

    init(_ key: SoftwareKey, gateway port: UInt16) {
        self.key = key
        self.port = port
    }

    func challenge(_ purpose: String) throws -> String {
        let answer = try Self.challengeCall(purpose).send(to: port)
        guard answer.status == 200, let text = answer.json("/challenges/0") else {
            throw StoryFault("no challenge: \(answer.status) \(answer.text)")
        }
        return text
    }

    static func challengeCall(_ purpose: String) -> Call {
        .json("\(endpoints)/challenges", #"{"purpose":"\#(purpose)"}"#)
    }

    /// The request that enrols the key, attested over SHA-256 of the challenge.
    func enrolment(_ challenge: String, at now: UnixTime) -> Call {
        .json("\(Self.endpoints)/keys", key.enrolment(challenge: challenge, at: now))
    }

    /// Adds the proof to a request: `generateAssertion` over SHA-256 of its description.
    mutating func signed(
        _ call: Call,
        _ challenge: String?,
        signing parts: SignedParts = .all
    ) -> Call {
        let request = SoftwareKey.Request(
            method: call.method,
            target: call.target,
            content: call.content,
            challenge: challenge
        )
        var call = call
        call.fields += key.proof(of: request, signing: .lines(parts, headers: [])).fields
        return call
    }

    /// The description that is signed, line by line.
    func clientData(_ call: Call, _ challenge: String) -> String {
        let bytes = RequestLines.clientData(
            .all,
            of: RequestLines.Request(
                method: call.method,
                target: call.target,
                digest: SHA256.digest(of: call.content).array
            ),
            challenge: challenge
        )
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// A request as a client sends it.
struct Call {
    var method: String
    var target: String
    var fields: [(name: String, value: String)] = []
    var content: [UInt8] = []
    /// The host that it asks; the admin listener answers only to its own name.
    var host = "shop.example.com"
    /// The content is sent in chunks, without Content-Length.
    var isChunked = false

    init(_ method: String, _ target: String, content: [UInt8] = []) {
        self.method = method
        self.target = target
        self.content = content
    }

    /// An order, the story's usual request.
    static var order: Call {
        Call("POST", "/v1/orders", content: Array(#"{"item":"lamp"}"#.utf8))
    }

    /// A call for the metrics of the admin listener.
    static var metrics: Call {
        var call = Call("GET", "/metrics")
        call.host = "localhost"
        return call
    }

    /// With JSON as its content.
    static func json(_ target: String, _ text: String) -> Call {
        var call = Call("POST", target, content: Array(text.utf8))
        call.fields = [("Content-Type", "application/json")]
        return call
    }

    /// The bytes of the head.
    var head: [UInt8] {
        var text = "\(method) \(target) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n"
        for field in fields { text += "\(field.name): \(field.value)\r\n" }
        if isChunked {
            text += "Transfer-Encoding: chunked\r\n"
        } else if !content.isEmpty || method != "GET" {
            text += "Content-Length: \(content.count)\r\n"
        }
        return Array((text + "\r\n").utf8)
    }

    /// The bytes after the head, in the pieces in which they are sent.
    var pieces: [[UInt8]] {
        guard isChunked else { return [content] }
        let size = 64 << 10
        let chunks = stride(from: 0, to: content.count, by: size).map { start in
            let chunk = content[start..<min(start + size, content.count)]
            return Array("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk
                + Array("\r\n".utf8)
        }
        return chunks + [Array("0\r\n\r\n".utf8)]
    }

    /// Sends all but the last byte, then ends, and waits until the gateway has ended too.
    func sendTruncated(to port: UInt16) throws {
        let wire = try Wire(port: port)
        try wire.send(head + content.dropLast())
        wire.finishSending()
        // By an end or a reset.
        _ = try? wire.readToEnd()
    }

    /// Sends the request on a connection of its own and reads the answer. `betweenPieces` is called
    /// before each piece of content but the first, with its number.
    func send(
        to port: UInt16,
        betweenPieces: (Int) throws -> Void = { _ in }
    ) throws -> Answer {
        let wire = try Wire(port: port)
        try wire.send(head)
        for (number, piece) in pieces.enumerated() {
            if number > 0 { try betweenPieces(number) }
            try wire.send(piece)
        }
        return Answer(try wire.readFinalResponse(to: method))
    }
}

/// The answer to a call.
struct Answer {
    private let response: WireResponse

    init(_ response: WireResponse) { self.response = response }

    var status: Int { response.status }

    /// The status line's words.
    var phrase: String {
        let words = response.head.startLine.split(separator: " ", maxSplits: 2)
        return words.count > 2 ? String(words[2]) : ""
    }

    /// A string member of a problem document; `nil` for other contents.
    func problem(_ name: String) -> String? {
        guard self["Content-Type"] == "application/problem+json" else { return nil }
        return json("/" + name)
    }

    /// The string at a place of a JSON document.
    func json(_ pointer: String) -> String? {
        JSONPointer(pointer)?.string(in: response.body.span).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    /// A field's value.
    subscript(name: String) -> String? { response.head.all(name).first }

    var challenge: String? { self["App-Attest-Challenge"] }

    var text: String { response.text }
}
