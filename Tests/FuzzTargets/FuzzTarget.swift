// What is fuzzed, and what must hold whatever the bytes are.
//
// A target takes any bytes and returns. That a parser throws its declared error is as good as that
// it reads; a trap is a finding, and so is a claim of `demand` that does not hold. The same code
// runs under libFuzzer (Tests/FuzzProgram) and over the corpora in the test suite.

/// A parser, or a family of small ones, that takes bytes of strangers.
package enum FuzzTarget: String, CaseIterable, Sendable {
    // What arrives on connections.
    case requests, responses, chunks, targets, addresses
    case http2
    case proxyHeaders = "proxy-headers"
    // Objects that devices made.
    case cbor, attestation, assertion, receipt, certificate
    case keyChain = "key-chain", keyDescription = "key-description", keyTexts = "key-texts"
    // Texts in header fields and contents.
    case challenge, session, base64, digest, json
    // What operators write.
    case configuration, rules, keyLines = "key-lines", times

    /// Feeds the bytes to the target. Ends the process when a claim does not hold.
    package func run(_ octets: [UInt8]) {
        switch self {
        case .requests: Self.requests(octets)
        case .responses: Self.responses(octets)
        case .chunks: Self.chunks(octets)
        case .targets: Self.targets(octets)
        case .addresses: Self.addresses(octets)
        case .http2: Self.http2(octets)
        case .proxyHeaders: Self.proxyHeaders(octets)
        case .cbor: Self.cbor(octets)
        case .attestation: Self.attestation(octets)
        case .assertion: Self.assertion(octets)
        case .receipt: Self.receipt(octets)
        case .certificate: Self.certificate(octets)
        case .keyChain: Self.keyChain(octets)
        case .keyDescription: Self.keyDescription(octets)
        case .keyTexts: Self.keyTexts(octets)
        case .challenge: Self.challenge(octets)
        case .session: Self.session(octets)
        case .base64: Self.base64(octets)
        case .digest: Self.digest(octets)
        case .json: Self.json(octets)
        case .configuration: Self.configuration(octets)
        case .rules: Self.rules(octets)
        case .keyLines: Self.keyLines(octets)
        case .times: Self.times(octets)
        }
    }

    /// Ends the process, as a trap does, when a claim does not hold. Stays in optimised builds.
    static func demand(_ holds: Bool, _ claim: @autoclosure () -> String) {
        guard holds else { fatalError("does not hold: \(claim())") }
    }
}
