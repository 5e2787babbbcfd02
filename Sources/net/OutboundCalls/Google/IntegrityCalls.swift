internal import Encodings
package import Tokens

/// A proof of `kind: play-integrity`: who reads its tokens, and how old they may be.
package struct IntegritySettings: Sendable {
    /// Who reads the tokens.
    package enum Decoder: Sendable {
        /// Google's service: tokens of both kinds of requests.
        case service(IntegrityService)
        /// This machine: tokens of classic requests.
        case local(ClassicTokenKeys)
    }

    /// The name of the proof.
    package let name: String
    package var decoder: Decoder
    /// `max_token_age`: seconds from Google's timestamp on for which a token is good. Default 5m,
    /// 10s…1h.
    package var ageMax: Int64 = 300

    package init(name: String, decoder: Decoder) { (self.name, self.decoder) = (name, decoder) }

    /// The service that is called; `nil` for a local decoder.
    package var service: IntegrityService? {
        if case .service(let service) = decoder { service } else { nil }
    }
}

/// Google's service that reads tokens (Google, REST, `v1.decodeIntegrityToken`).
package struct IntegrityService: Hashable, Sendable {
    /// Google's address.
    package static let address = "https://playintegrity.googleapis.com"

    /// The name of the proof.
    package let name: String
    /// `service_account`
    package var account: ServiceAccount
    /// `url`: the service, before `/v1/`. Default ``address``.
    package var url = Self.address
    package var calls = TokenCallSettings()

    package init(name: String, account: ServiceAccount) {
        (self.name, self.account) = (name, account)
    }
}

/// A call to Google for a proof.
package struct IntegrityCall: OutboundCall {
    package enum Question: Sendable {
        /// For an access token.
        case grant
        /// What a token of this package says.
        case token([UInt8], package: String, AccessToken)
    }

    package let proof: String
    package let question: Question
    package let timeout: Duration

    package init(_ service: IntegrityService, _ question: Question) {
        (proof, timeout) = (service.name, service.calls.timeout)
        self.question = question
    }

    /// Access tokens come from another host. No proof has a colon in its name.
    package var host: String {
        switch question {
        case .grant: proof + ":grant"
        case .token: proof
        }
    }

    package var kind: String { host }
    package var family: String { host }

    /// Whether Google may have made this token: its alphabet is that of `token68` (RFC 9110 §11.2).
    /// Others cost no call.
    package static func isToken(_ text: [UInt8]) -> Bool {
        guard (1...ClassicTokenKeys.tokenBytesMax).contains(text.count) else { return false }
        return text.allSatisfy(\.isToken68)
    }
}

/// Google's service as a party that is called.
package struct IntegrityCalls: CalledParty {
    private var services: TokenParties<IntegrityService>

    package init(_ settings: [IntegrityService]) { services = TokenParties(settings, \.name) }

    package mutating func replace(by settings: [IntegrityService]) {
        services.replace(by: settings, \.name)
    }

    package func limits(of host: String) -> CallLine.Limits? {
        services[String(host.prefix { $0 != ":" })]?.calls.limits
    }

    package func obstacle(to call: IntegrityCall) -> CallFailure? {
        services[call.proof] == nil ? .noHost : nil
    }

    /// The longest answer that is read. Google's have some thousand bytes.
    package static let answerBytesMax = 64 << 10

    package mutating func written(_ call: IntegrityCall, at wall: Int64) -> CallRequest {
        guard let service = services[call.proof] else {
            preconditionFailure("IntegrityCalls: a call with an obstacle is written")
        }
        var request: CallRequest
        switch call.question {
        case .grant:
            request = CallRequest(
                url: service.account.tokenURL,
                fields: [],
                contentType: "application/x-www-form-urlencoded",
                content: service.account.grant(at: wall)
            )
        case .token(let token, let package, let access):
            var json = JSONWriter()
            json.object { $0.member("integrityToken", String(decoding: token, as: UTF8.self)) }
            request = CallRequest(
                url: "\(service.url)/v1/\(package):decodeIntegrityToken",
                fields: [CallRequest.Field("Authorization", "Bearer \(access.text)")],
                contentType: "application/json",
                content: json.bytes
            )
        }
        request.roots = service.calls.roots
        request.proxy = service.calls.proxy
        request.answerBytesMax = Self.answerBytesMax
        return request
    }

    /// Another access token has to be asked for first.
    package mutating func renews(_ refused: CallRequest, of call: IntegrityCall) -> Bool { false }
}
