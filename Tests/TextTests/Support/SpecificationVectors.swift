import AppAttest
import Cryptography
import Encodings
import KeyAttestation
import RequestBinding
import Testing

/// The test vectors in the appendix of the specification, in its Markdown.
///
/// The code that clients and gateway share computes them. Two signatures of software keys are kept
/// here, since each signing gives another one; they are verified before they are written.
struct SpecificationVectors {
    /// A part of the request that several vectors have.
    private static let challenge = "AQK5TG9OsePDnwAAAAAAAAABAAAAAGsBPcgXDVlJPoNH3aeJ2TP69BF3"
    private static let content = #"{"item":"lamp","count":2}"#
    private static let idempotencyKey = "8e03978e-40d5-43e8-bc93-6894a57f9324"

    private static let appID = "ABCDE12345.com.example.shop"
    private static let appleKey =
        "BOjkF9BhFvZ7iM4bElEOM61+9D14y6mmBd/djiWp6Jdq7D7IOHFIyeYut3SVkTpYePkazIpDcAxPlKhsZipkBoo="
    private static let assertion =
        "omlzaWduYXR1cmVYRzBFAiBuP2Sn75gU8PrdQ/uULBU+IDfCeRYiq1Zl02EcT2RVYQIhAPO8xlbWmklBNcPY9BZX"
        + "BB7qVEil5bzXhb2Vxc67b8WQcWF1dGhlbnRpY2F0b3JEYXRhWGb1RJJY2RbUlwgWimB4ENk2SaYQLwkRls0h"
        + "CIl/KsREJsAAAAABondhcHBsZV9idW5kbGVfdmVyc2lvbl8wMWQxMzE0eBxhcHBsZV92YWxpZGF0aW9uX2Nh"
        + "dGVnb3J5XzAxRAQAAAA="
    /// The authenticator data stand at the end of the assertion.
    private static let authenticatorDataCount = 102

    private static let packageName = "com.example.shop"
    private static let androidKey =
        "BHHvRA1El5Q9kPOfs2eM45x9RPCokY3sdqhCNjmow+PA2XhUp5OHiBzL6M1z0cjNXWyBBCiqHlAPgGOJLPEbLPk="
    private static let keySignature =
        "v1.1.MEUCIQC93W-0IXrMMmjm8Qe7uQYL-N3HoAFmgwvjFrrcAPyoEwIgEy98Q9Pt0M5Di0Z_3haqObnfCCVTEsrf"
        + "QejzWvJ_t4E"

    private static let sequence = SequenceNumber(7)
    private static let enrolmentChallenge =
        "AQFh7rC0PzOq2QAAAAAAAAABAAAAAGsBPdLMrxh6oJk1ZJg3qFQ5rJbZ"
    private static let context = "account-4711"

    private var lines: [String] = []

    /// The text between the marks of the appendix.
    var text: String { lines.joined(separator: "\n") + "\n" }

    /// Throws where a kept signature does not verify.
    init() throws {
        try addContent()
        addNoContent()
        addParts()
        try addSession()
        try addAndroid()
        addEnrolment()
    }

    // MARK: The vectors

    private static func digest(_ text: String) -> [UInt8] {
        SHA256.digest(of: Array(text.utf8)).array
    }

    private static func contentDigest(_ text: String) -> String {
        "Content-Digest: sha-256=:\(Base64.text(digest(text))):"
    }

    /// The client data of the request of the first vector.
    private static var signedContent: [UInt8] {
        RequestLines.clientData(
            .all,
            of: RequestLines.Request(
                method: "POST",
                target: "/v1/orders?dry=1",
                digest: digest(content),
                headers: [("idempotency-key", idempotencyKey)]
            ),
            challenge: challenge
        )
    }

    private mutating func addContent() throws {
        let key = try #require(Base64.decode(Self.appleKey).flatMap { P256PublicKey(x963: $0) })
        let assertion = try #require(Base64.decode(Self.assertion))
        let clientData = Self.signedContent
        let verified = try UnverifiedAssertion(bytes: assertion)
            .verified(
                clientData: clientData,
                key: key,
                app: AppIDHash(appID: Self.appID),
                after: .zero
            )
        let authenticatorData = Array(assertion.suffix(Self.authenticatorDataCount))
        let nonce = SHA256.digest(of: authenticatorData + SHA256.digest(of: clientData).array)
        heading("Content, a Signed Field, a Challenge", "vector-content")
        say("All four parts and the field idempotency-key are signed. The content:")
        block([Self.content])
        addClientData(clientData)
        say("The fields of the request, with an assertion of App Attest:")
        block([
            "Idempotency-Key: \(Self.idempotencyKey)", Self.contentDigest(Self.content),
            "App-Attest-Key-Id: \(Base64.text(SHA256.digest(of: key.x963).array))",
            "App-Attest-Challenge: \(Self.challenge)", "App-Attest-Assertion: \(Self.assertion)",
        ])
        say("What a verifier finds:")
        block([
            "app id: \(Self.appID)", "counter: \(verified.counter.rawValue)",
            "public key (base64): \(Self.appleKey)",
            "authenticatorData (hex): \(Hex.text(authenticatorData))",
            "nonce (hex): \(Hex.text(nonce.array))",
        ])
    }

    private mutating func addNoContent() {
        heading("No Content, a Challenge", "vector-no-content")
        say("All four parts are signed, and no field. The digest is that of zero bytes.")
        addClientData(
            RequestLines.clientData(
                .all,
                of: RequestLines.Request(
                    method: "GET",
                    target: "/v1/orders/17",
                    digest: Self.digest("")
                ),
                challenge: Self.challenge
            )
        )
        say("A `Content-Digest` is not needed. Where it is sent, it is:")
        block([Self.contentDigest("")])
    }

    private mutating func addParts() {
        heading("Parts Left Out, Fields Absent and Empty", "vector-parts")
        say(
            "Method and target are signed, and the fields if-match, which is absent, and x-note,",
            "which is empty. The line of x-note ends in a space."
        )
        addClientData(
            RequestLines.clientData(
                [.method, .target],
                of: RequestLines.Request(
                    method: "PATCH",
                    target: "/",
                    digest: Self.digest(""),
                    headers: [("if-match", nil), ("x-note", "")]
                ),
                challenge: nil
            )
        )
    }

    private mutating func addSession() throws {
        let sequence = try #require(Self.sequence)
        let secret = [UInt8](0..<32)
        let clientData = RequestLines.clientData(
            .all,
            of: RequestLines.Request(
                method: "POST",
                target: "/v1/orders?dry=1",
                digest: Self.digest(Self.content),
                headers: [("idempotency-key", Self.idempotencyKey)]
            ),
            sequence: sequence
        )
        let code = HMACSHA256.Key(secret.span).code(clientData.span)
        heading("A Session", "vector-session")
        say("The request of {{vector-content}} as number \(sequence.text) of a session.")
        addClientData(clientData)
        say("The secret, and the fields that follow from it:")
        block([
            "secret (hex): \(Hex.text(secret))", "App-Attest-Sequence: \(sequence.text)",
            "App-Attest-Signature: \(Base64.text(code.array))",
        ])
    }

    private mutating func addAndroid() throws {
        let key = try #require(Base64.decode(Self.androidKey).flatMap { P256PublicKey(x963: $0) })
        let signature = try #require(UnverifiedKeySignature(Array(Self.keySignature.utf8)))
        let clientDataHash = SHA256.digest(of: Self.signedContent).array
        let isValid = signature.isValid(
            clientDataHash: clientDataHash,
            package: Self.packageName,
            key: key,
            after: .zero
        )
        try #require(isValid)
        let message = try #require(
            UnverifiedKeySignature.message(
                package: Self.packageName,
                counter: signature.counter,
                clientDataHash: clientDataHash
            )
        )
        heading("A Key of Android", "vector-android")
        say("The request of {{vector-content}}. What the key signs, \(message.count) bytes:")
        block(Self.quoted(message))
        say("The public key, and the fields that follow from it:")
        block([
            "public key (base64): \(Self.androidKey)",
            "App-Attest-Key-Id: \(Base64.text(SHA256.digest(of: key.x963).array))",
            "App-Attest-Assertion: \(Self.keySignature)",
        ])
    }

    private mutating func addEnrolment() {
        heading("Enrolments", "vector-enrolment")
        say("Without a context, the client data are the challenge alone.")
        let challenge = Self.enrolmentChallenge
        addClientData(EnrolmentLines.clientData(challenge: challenge, contextDigest: nil))
        say("With the context `\(Self.context)`, they are three lines.")
        let digest = Self.digest(Self.context)
        addClientData(EnrolmentLines.clientData(challenge: challenge, contextDigest: digest))
    }

    // MARK: Markdown

    private mutating func heading(_ title: String, _ anchor: String) {
        lines += ["", "## \(title) {#\(anchor)}"]
    }

    private mutating func say(_ paragraph: String...) { lines += [""] + paragraph }

    private mutating func addClientData(_ bytes: [UInt8]) {
        let hash = SHA256.digest(of: bytes).array
        say("The client data, \(bytes.count) bytes, and their SHA-256:")
        block(Self.quoted(bytes) + ["", "hex: \(Hex.text(hash))", "base64: \(Base64.text(hash))"])
    }

    /// Folds the lines of a block where one is too long; a block that has folded lines says so
    /// (RFC 8792 §7.1).
    private mutating func block(_ text: [String]) {
        let folded = text.flatMap(Self.folded)
        let note = "NOTE: '\\' line wrapping per RFC 8792"
        lines += ["", "~~~ text"]
        lines += folded.count > text.count ? [note, ""] : []
        lines += folded + ["~~~"]
    }

    /// The columns of a folded line: text of an Internet-Draft has 72, of which 3 are the margin.
    private static let columnsMax = 69

    private static func folded(_ line: String) -> [String] {
        var rest = Array(line.utf8)
        var folded: [String] = []
        while rest.count > columnsMax {
            var end = columnsMax - 1
            // Spaces at the beginning of a line are lost when it is unfolded.
            while end > 1, rest[end] == UInt8(ascii: " ") { end -= 1 }
            folded.append(String(decoding: rest[..<end], as: UTF8.self) + "\\")
            rest.removeFirst(end)
        }
        return folded + [String(decoding: rest, as: UTF8.self)]
    }

    /// Each line in quotes, with its line feed as `\n`, so that spaces at its end are seen.
    private static func quoted(_ bytes: [UInt8]) -> [String] {
        var quoted = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .map { "\"" + String(decoding: $0, as: UTF8.self) + "\\n\"" }
        // The last piece has no line feed after it.
        let last = quoted.removeLast()
        return quoted + (last == "\"\\n\"" ? [] : [last.replacing("\\n\"", with: "\"")])
    }
}
