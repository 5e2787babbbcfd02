// What is fuzzed, and what must hold whatever the bytes are.
//
// A target takes any bytes and returns. That a parser throws its declared error is as good as that
// it reads; a trap is a finding, and so is a claim of `demand` that does not hold. The same code
// runs under libFuzzer (Tests/FuzzProgram) and over the corpora in the test suite.

/// A parser, or a family of small ones, that takes bytes of strangers.
package enum FuzzTarget: String, CaseIterable, Sendable {
    // What arrives on connections.
    case requests, responses, chunks, targets, addresses
    case http2, http2Origin = "http2-origin"
    case check
    case proxyHeaders = "proxy-headers"
    // Objects that devices made.
    case cbor, attestation, assertion, receipt, certificate
    case keyChain = "key-chain", keyDescription = "key-description", keyTexts = "key-texts"
    case enrolment
    // Texts in header fields and contents.
    case challenge, session, tokens, base64, digest, json
    // What other gateways of a fleet have told.
    case told
    // What operators write.
    case configuration, rules, keyLines = "key-lines", times

    /// Feeds the bytes to the target. Ends the process when a claim does not hold.
    package func run(_ bytes: [UInt8]) {
        switch self {
        case .requests: Self.requests(bytes)
        case .responses: Self.responses(bytes)
        case .chunks: Self.chunks(bytes)
        case .targets: Self.targets(bytes)
        case .addresses: Self.addresses(bytes)
        case .http2: Self.http2(bytes)
        case .http2Origin: Self.http2Origin(bytes)
        case .check: Self.check(bytes)
        case .proxyHeaders: Self.proxyHeaders(bytes)
        case .cbor: Self.cbor(bytes)
        case .attestation: Self.attestation(bytes)
        case .assertion: Self.assertion(bytes)
        case .receipt: Self.receipt(bytes)
        case .certificate: Self.certificate(bytes)
        case .keyChain: Self.keyChain(bytes)
        case .keyDescription: Self.keyDescription(bytes)
        case .keyTexts: Self.keyTexts(bytes)
        case .enrolment: Self.enrolment(bytes)
        case .challenge: Self.challenge(bytes)
        case .session: Self.session(bytes)
        case .tokens: Self.tokens(bytes)
        case .base64: Self.base64(bytes)
        case .digest: Self.digest(bytes)
        case .json: Self.json(bytes)
        case .told: Self.told(bytes)
        case .configuration: Self.configuration(bytes)
        case .rules: Self.rules(bytes)
        case .keyLines: Self.keyLines(bytes)
        case .times: Self.times(bytes)
        }
    }

    /// Ends the process, as a trap does, when a claim does not hold. Stays in optimised builds.
    static func demand(_ holds: Bool, _ claim: @autoclosure () -> String) {
        guard holds else { fatalError("does not hold: \(claim())") }
    }
}
