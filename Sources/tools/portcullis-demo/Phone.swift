import AppAttest
import Cryptography
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

    func challenge(_ purpose: String) throws(DemoError) -> String {
        let answer = try Self.challengeCall(purpose).send(to: port)
        guard answer.status == 200, let text = answer.json("/challenges/0") else {
            throw DemoError("no challenge: \(answer.status) \(answer.text)")
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
            method: call.method,
            target: call.target,
            digest: SHA256.digest(of: call.content).array,
            challenge: challenge
        )
        return String(decoding: bytes, as: UTF8.self)
    }
}
