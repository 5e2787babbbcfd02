import ConfigurationReading
import Rules

/// One request that a device of a fleet has signed in the form that the gateway's configuration
/// asks for.
package struct SingleRequest: Sendable {
    /// The fields to send with the request, by the names that its rule gives them.
    package let fields: [(name: String, value: String)]

    /// Signs with the fleet's next counter, and moves the fleet to the counter after it.
    ///
    /// - Parameters:
    ///   - request: method, URL and the fields that the client sends.
    ///   - content: the content that will be sent.
    ///   - challenge: `nil` when the rule asks for none.
    ///   - pairing: what signs, and the gateway's rules.
    ///   - index: the number of the device in the fleet, from 0.
    /// - Throws: that no rule verifies the request, that a challenge is missing, that the fleet has
    ///   no such device or no counter left.
    package init(
        _ request: LoadPlan.Request,
        content: [UInt8],
        challenge: String?,
        by pairing: inout FleetPairing,
        device index: Int
    ) throws(LoadError) {
        let rule = try pairing.judgingRule(for: request.sketch)
        var demand = RequestDemand(rule)
        let fleet = pairing.fleet
        guard (0..<fleet.count).contains(index) else {
            throw LoadError("--device \(index): the fleet has the devices 0…\(fleet.count - 1)")
        }
        guard fleet.nextCounter < .max else {
            throw LoadError("the fleet's counters are used up; prepare another")
        }
        guard demand.challenge == nil || challenge != nil else {
            throw LoadError(
                "rule \(rule.id) asks for a challenge: give the one of a 401, or one of "
                    + "POST \(pairing.configuration.endpointsPath)/challenges, as --challenge"
            )
        }
        let mint = try TokenMint(pairing, for: rule.integrity, of: "rule \(rule.id)")
        demand.tokenField = mint?.field ?? []
        var request = request
        request.content = ContentPlan(content)
        let template = RequestTemplate(demand, of: request)
        var signer = Signer(pairing.devices, mint)
        let challenge = Array((challenge ?? "").utf8)
        let order = ToSign(counter: fleet.nextCounter, content: 0, challenge: challenge)
        let proof = signer.sign(order, device: index, of: template)
        pairing.fleet.nextCounter += 1
        let text = { (bytes: [UInt8]) in String(decoding: bytes, as: UTF8.self) }
        let digest = template.contents[0].digest.map { [("content-digest", $0)] } ?? []
        fields = template.fields(of: proof).map { (text($0.name), text($0.value)) } + digest
    }
}
