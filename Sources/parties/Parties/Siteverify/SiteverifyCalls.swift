// Tests for people: services that say of a client's token whether a person has passed their test.
// As values and machines without I/O, clock or lock.
//
//   SiteverifySettings   one service of the section `proofs`, of `kind: siteverify`
//   SiteverifyCall       a question about a token
//   SiteverifyCalls      the services as a party that is called: how a question is written
//   SiteverifyAnswer     what a service answers, read strictly
//   SiteverifyVerdict    what the answer means for the token, and whose fault it is
//
// Two shapes exist. reCAPTCHA, hCaptcha and Turnstile take a form and answer with `success`.
// reCAPTCHA Enterprise takes JSON and answers with the token's properties and a score.
//
// A client chooses its token, and a rule may forward a request whose token can't be checked. So a
// reply that a token may have caused never counts as a failed party: only what no token can cause
// does. A token that no service makes is not sent at all.
//
// `SiteverifyParty` performs the calls.

import Encodings
package import HTTPWire
package import OutboundCalls

/// A question about a client's token.
package struct SiteverifyCall: OutboundCall {
    /// The name of the proof whose service is asked.
    package let proof: String
    /// As ``isToken(_:)`` allows it.
    package let token: [UInt8]
    /// The client's address; `nil` where it is unknown.
    package let address: IPAddress?
    package let timeout: Duration

    package init(proof: String, token: [UInt8], address: IPAddress?, timeout: Duration) {
        self.proof = proof
        self.token = token
        self.address = address
        self.timeout = timeout
    }

    package var host: String { proof }
    package var kind: String { proof }
    package var family: String { proof }

    /// The most bytes of a token. Turnstile's have up to 2,048, hCaptcha's some thousands.
    package static let tokenBytesMax = 8_192

    /// Whether a service may have made this token: all of them are in the alphabet of `token68`
    /// (RFC 9110 §11.2). Others cost no call, and reach no filter of the service.
    package static func isToken(_ text: [UInt8]) -> Bool {
        guard (1...tokenBytesMax).contains(text.count) else { return false }
        return text.allSatisfy(\.isToken68)
    }
}

/// The services as a party that is called.
package struct SiteverifyCalls: CalledParty {
    private var services: TokenParties<SiteverifySettings>

    package init(_ settings: [SiteverifySettings]) { services = TokenParties(settings, \.name) }

    package mutating func replace(by settings: [SiteverifySettings]) {
        services.replace(by: settings, \.name)
    }

    package func limits(of host: String) -> CallLine.Limits? { services[host]?.calls.limits }

    package func obstacle(to call: SiteverifyCall) -> CallFailure? {
        services[call.proof] == nil ? .noHost : nil
    }

    /// The longest answer that is read. Enterprise's have some thousand bytes.
    package static let answerBytesMax = 64 << 10

    package mutating func written(_ call: SiteverifyCall, at wall: Int64) -> CallRequest {
        guard let service = services[call.proof] else {
            preconditionFailure("SiteverifyCalls: a call with an obstacle is written")
        }
        let isEnterprise = service.service == .enterprise
        var request = CallRequest(
            url: service.url,
            fields: isEnterprise ? [CallRequest.Field("X-Goog-Api-Key", service.secret)] : [],
            contentType: isEnterprise ? "application/json" : "application/x-www-form-urlencoded",
            content: isEnterprise ? service.assessment(call) : service.form(call)
        )
        request.roots = service.calls.roots
        request.proxy = service.calls.proxy
        request.answerBytesMax = Self.answerBytesMax
        return request
    }

    /// A secret is the same for each call.
    package mutating func renews(_ refused: CallRequest, of call: SiteverifyCall) -> Bool { false }
}

/// A service that knows whether a person has passed its test: a proof of `kind: siteverify`.
package struct SiteverifySettings: Hashable, ProofPartySettings {
    package typealias Draft = SiteverifyDraft

    package static let kind = "siteverify"

    /// `service`: the service, which has the form of questions and answers.
    package enum Service: String, CaseIterable, Hashable, Sendable {
        /// reCAPTCHA v2 and v3 (Google, "Verifying the user's response").
        case recaptcha
        /// hCaptcha (hCaptcha, "Verify the User Response Server Side").
        case hcaptcha
        /// Turnstile (Cloudflare, "Validate the token").
        case turnstile
        /// reCAPTCHA Enterprise (Google Cloud, REST, `projects.assessments.create`).
        case enterprise = "recaptcha-enterprise"

        /// The address of the service; `nil` where it depends on the operator's project.
        package var address: String? {
            switch self {
            case .recaptcha: "https://www.google.com/recaptcha/api/siteverify"
            case .hcaptcha: "https://api.hcaptcha.com/siteverify"
            case .turnstile: "https://challenges.cloudflare.com/turnstile/v0/siteverify"
            case .enterprise: nil
            }
        }

        /// The address of assessments in a project of Google Cloud.
        package static func assessments(project: String) -> String {
            "https://recaptchaenterprise.googleapis.com/v1/projects/\(project)/assessments"
        }
    }

    /// The name of the proof.
    package let name: String
    package let service: Service
    /// `url`: the address that is called. Default the service's own.
    package let url: String
    /// `secret_file`: the key that the service shares with the operator alone. For Enterprise an
    /// API key. It never belongs into a log.
    package var secret: String
    /// `site_key`: the key that the site or app shows. Required for Enterprise. hCaptcha refuses
    /// tokens of another one. Default none.
    package var siteKey: String?
    /// `action`: the word that the site gives to its test. Default none: any.
    package var action: String?
    /// `hostname`: the sites and apps, in lower case, one of which the token has to come from.
    /// Default none: any that the service admits.
    package var hostnames: Set<String> = []
    /// `min_score`: the least score. Default none.
    package var scoreMin: TestScore?
    /// `max_score`: the greatest score, for services whose score is a risk, as hCaptcha's. Default
    /// none.
    package var scoreMax: TestScore?
    /// `remote_address`: whether the service gets the client's address. Default false.
    package var sendsAddress = false
    package var calls = TokenCallSettings()

    package init(name: String, service: Service, url: String, secret: String) {
        self.name = name
        self.service = service
        self.url = url
        self.secret = secret
    }

    /// The longest file with a secret that is read. Their secrets have 35 to 64 bytes.
    package static let secretBytesMax = 1_024

    /// Reads the file of a secret: one line of visible characters.
    package static func secret(_ file: [UInt8]) -> String? {
        let space: Set<UInt8> = [0x20, 0x09, 0x0D, 0x0A]
        let text = file.drop { space.contains($0) }.reversed().drop { space.contains($0) }
        guard !text.isEmpty, text.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        return String(decoding: text.reversed(), as: UTF8.self)
    }
}

/// A score of a test, 0…1, in thousandths. Google writes 0.9 as 0.8999999761581421.
package struct TestScore: Comparable, Hashable, Sendable, CustomStringConvertible {
    /// 0…1000.
    package let thousandths: Int

    /// `nil` for a number that is no score.
    package init?(_ value: Double) {
        guard (0...1).contains(value) else { return nil }
        thousandths = Int((value * 1_000).rounded())
    }

    /// Reads a text such as `0.5`.
    package init?(_ text: String) {
        guard (1...5).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }),
            let value = Double(text)
        else { return nil }
        self.init(value)
    }

    package static func < (left: Self, right: Self) -> Bool { left.thousandths < right.thousandths }

    package var description: String { "\(Double(thousandths) / 1_000)" }
}

extension SiteverifySettings {
    /// Google, "Verifying the user's response": `secret`, `response`, `remoteip`; hCaptcha also has
    /// `sitekey`.
    fileprivate func form(_ call: SiteverifyCall) -> [UInt8] {
        var form: [UInt8] = []
        func add(_ name: String, _ value: some Sequence<UInt8>) {
            if !form.isEmpty { form.append(UInt8(ascii: "&")) }
            form += Array(name.utf8) + [UInt8(ascii: "=")]
            for byte in value {
                if byte.isUnreserved {
                    form.append(byte)
                } else {
                    let digits = Array("0123456789ABCDEF".utf8)
                    form += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
                }
            }
        }
        add("secret", secret.utf8)
        add("response", call.token)
        if sendsAddress, let address = call.address { add("remoteip", address.text.utf8) }
        if service == .hcaptcha, let siteKey { add("sitekey", siteKey.utf8) }
        return form
    }

    /// Google Cloud, REST, `Event`: `token`, `siteKey`, `expectedAction`, `userIpAddress`.
    fileprivate func assessment(_ call: SiteverifyCall) -> [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.object("event") { json in
                json.member("token", String(decoding: call.token, as: UTF8.self))
                if let siteKey { json.member("siteKey", siteKey) }
                if let action { json.member("expectedAction", action) }
                if sendsAddress, let address = call.address {
                    json.member("userIpAddress", address.text)
                }
            }
        }
        return json.bytes
    }
}
