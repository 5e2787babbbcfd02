import AppAttest
import Cryptography
import Encodings
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator

/// A gateway that serves at a port of this machine.
protocol ServedGateway {
    /// In the clear.
    var port: UInt16 { get }
    /// Where ``ClientSide/current`` says that clients connect.
    var clientPort: UInt16 { get }
    /// The network that it is on; `nil` for the tests' own.
    var network: NetworkNamespace? { get }
}

extension ServedGateway {
    var network: NetworkNamespace? { nil }

    func client() -> HTTPClient { HTTPClient(port: clientPort, on: network, .current) }

    /// Challenges from the gateway's endpoint.
    func challenges(_ purpose: String, _ count: Int = 1, _ client: HTTPClient) throws -> [String] {
        let answer = try client.send(
            "POST",
            "/.well-known/app-attest/challenges",
            content: Array(#"{"purpose":"\#(purpose)","count":\#(count)}"#.utf8)
        )
        guard let texts = answer.object?["challenges"] as? [String], texts.count == count else {
            throw ChildProcess.Failure(description: "challenges: \(answer.status) \(answer.text)")
        }
        return texts
    }

    func challenges(_ purpose: String, _ client: HTTPClient) throws -> [String] {
        try challenges(purpose, 1, client)
    }

    /// Sends a POST without content that a key signs over a new challenge.
    func post(
        _ target: String,
        by key: inout SoftwareKey,
        _ client: HTTPClient,
        signing: SigningForm
    ) throws -> Answer {
        let request = SoftwareKey.Request(
            method: "POST",
            target: target,
            challenge: try challenges("assertion", client)[0]
        )
        return try client.send(request, key.proof(of: request, signing: signing))
    }

    /// Asks for an enrolment challenge as an app does that names its key.
    func askToEnrol(_ key: SoftwareKey, _ client: HTTPClient) throws -> Answer {
        let document = #"{"purpose":"enrolment","key_id":"\#(key.keyID.base64)"}"#
        return try client.send(
            "POST",
            "/.well-known/app-attest/challenges",
            content: Array(document.utf8)
        )
    }

    /// Enrols a key with a context.
    func enrol(_ key: SoftwareKey, _ client: HTTPClient, context: [UInt8]) throws -> Answer {
        let challenge = try challenges("enrolment", client)[0]
        let document = key.enrolment(challenge: challenge, context: context, at: Scenario.now)
        return try client.send(
            "POST",
            "/.well-known/app-attest/keys",
            content: Array(document.utf8)
        )
    }

    /// Enrols a key, with a fresh challenge unless one is given.
    func enrol(
        _ key: SoftwareKey,
        _ client: HTTPClient,
        with given: String? = nil,
        at time: UnixTime = Scenario.now,
        damage: AttestationDamage? = nil
    ) throws -> Answer {
        let challenge = try given ?? challenges("enrolment", client)[0]
        let document =
            damage.map { Self.damaged(key, challenge, at: time, $0) }
            ?? key.enrolment(challenge: challenge, at: time)
        return try client.send(
            "POST",
            "/.well-known/app-attest/keys",
            content: Array(document.utf8)
        )
    }

    /// A document with damage. A phone's chain has only one: it was made for another challenge.
    private static func damaged(
        _ key: SoftwareKey,
        _ challenge: String,
        at time: UnixTime,
        _ damage: AttestationDamage
    ) -> String {
        guard key.device.phone == nil else {
            let other = String(challenge.reversed())
            return key.enrolment(challenge: other, at: time).replacing(other, with: challenge)
        }
        let object = key.attestation(
            clientDataHash: SHA256.digest(of: Array(challenge.utf8)).array,
            at: time,
            damage: damage
        )
        return #"{"key_id":"\#(key.keyID.base64)","attestation":"\#(Base64.text(object))","#
            + #""challenge":"\#(challenge)"}"#
    }
}
