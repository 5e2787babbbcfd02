/// A service that knows whether a person has passed its test: a proof of `kind: siteverify`.
package struct SiteverifySettings: Hashable, Sendable {
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
