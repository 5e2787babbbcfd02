import AppAttest
package import ConfigurationReading
import RequestBinding
import Rules
package import Signatures
import SoftwareAuthenticator

/// One request that a device of a fleet has signed in the form that the gateway's configuration
/// asks for.
package struct SingleRequest: Sendable {
    /// The fields to send with the request, by the names that its rule gives them.
    package let fields: [(name: String, value: String)]

    /// Signs with the fleet's next counter, and moves the fleet to the counter after it.
    ///
    /// - Parameters:
    ///   - request: method, URL and the fields that the client sends.
    ///   - url: the URL once more, in its parts.
    ///   - content: the content that will be sent.
    ///   - challenge: `nil` when the rule asks for none.
    ///   - configuration: the gateway's, which has the rule.
    ///   - fleet: what signs.
    ///   - index: the number of the device in the fleet, from 0.
    ///   - showsTokens: a phone shows a token of Play Integrity beside its signature.
    ///   - now: the time, for the device's certificates.
    /// - Throws: that no rule verifies the request, that a challenge is missing, that the fleet has
    ///   no such device or no counter left.
    package init(
        _ request: RequestSketch,
        to url: LoadURL,
        content: [UInt8],
        challenge: String?,
        _ configuration: GatewayConfiguration,
        fleet: inout DeviceFleet,
        device index: Int,
        showsTokens: Bool = false,
        now: UnixTime
    ) throws(LoadError) {
        let rule = try configuration.judgingRule(for: request, keysOf: fleet.appIDs)
        let demand = RequestDemand(rule)
        guard (0..<fleet.count).contains(index) else {
            throw LoadError("--device \(index): the fleet has the devices 0…\(fleet.count - 1)")
        }
        guard fleet.nextCounter < .max else {
            throw LoadError("the fleet's counters are used up; prepare another")
        }
        guard demand.challenge == nil || challenge != nil else {
            throw LoadError(
                "rule \(rule.id) asks for a challenge: give the one of a 401, or one of "
                    + "POST \(configuration.endpointsPath)/challenges, as --challenge"
            )
        }
        var mint = try TokenMint(
            fleet,
            if: showsTokens,
            for: rule.integrity,
            of: "rule \(rule.id)",
            configuration,
            now: now
        )
        var key = fleet.devices(at: now).key(index)
        key.counter = SignCounter(rawValue: fleet.nextCounter - 1)
        fleet.nextCounter += 1
        let signed = SoftwareKey.Request(
            method: request.method,
            target: url.target,
            content: content,
            challenge: challenge,
            fields: Self.values(of: request, host: url.authority)
        )
        let proof = key.proof(of: signed, signing: rule.signing)
        let digest = SHA256.digest(of: content).array
        let clientData = SoftwareKey.clientData(of: signed, rule.signing, digest)
        let token = mint?.token(of: key, over: SHA256.digest(of: clientData).array)
        let text = { (name: [UInt8]) in String(decoding: name, as: UTF8.self) }
        let fields: [(name: String, value: String?)] = [
            (text(rule.fields.keyID), proof.keyID),
            (text(rule.fields.assertion), proof.assertion),
            (text(rule.fields.challenge), demand.sendsChallengeField ? proof.challenge : nil),
            ("content-digest", demand.declaresDigest ? proof.contentDigest : nil),
            (text(mint?.field ?? []), token.map(text)),
        ]
        self.fields = fields.compactMap { name, value in value.map { (name, $0) } }
    }

    /// The values of the request's fields as they are signed: those of a name's lines joined.
    static func values(of request: RequestSketch, host: String) -> [String: String] {
        var values: [String: String] = [:]
        for field in request.headers {
            let name = field.name.lowercased()
            values[name] = values[name].map { "\($0), \(field.value)" } ?? field.value
        }
        values["host"] = values["host"] ?? host
        return values
    }
}
