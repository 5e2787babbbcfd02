import ConfigurationReading
import Expectations
import Parties
import Testing

/// Proofs of `kind: siteverify`.
@Suite struct SiteverifySettingTests {
    private static func loaded(
        _ proof: String,
        secret: String = "s3cret\n",
        mode: UInt16 = 0o600
    ) -> LoadedConfiguration {
        var files = MemoryFiles()
        files.files = [
            "p.yaml": """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: ["o:80"] } }
            default: { origin: o, mode: off }
            proofs: { human: { kind: siteverify, \(proof) } }
            rules:
              - id: r
                match: { path: /r }
                mode: enforce
                accept: [human]
            """,
            "s": secret,
        ]
        files.permissions["s"] = mode
        return ConfigurationLoader.load("p.yaml", files: files)
    }

    private static func settings(_ proof: String) throws -> SiteverifySettings {
        let loaded = loaded(proof)
        expectEqual(loaded.problems.map(\.text), [])
        let settings = loaded.configuration?.proofs.first?.settings
        return try #require(settings as? SiteverifySettings)
    }

    private static let rest = "secret_file: s, field: X-T, hostname: shop.example"

    @Test(arguments: [
        ("recaptcha", "https://www.google.com/recaptcha/api/siteverify"),
        ("hcaptcha", "https://api.hcaptcha.com/siteverify"),
        ("turnstile", "https://challenges.cloudflare.com/turnstile/v0/siteverify"),
    ])
    func `each service has its own address`(_ service: String, _ url: String) throws {
        let settings = try Self.settings("service: \(service), \(Self.rest)")
        #expect(settings.service.rawValue == service && settings.url == url)
        #expect(settings.secret == "s3cret" && settings.name == "human")
        expectEqual(settings.hostnames, ["shop.example"])
        #expect(!settings.sendsAddress && settings.calls.timeout == .seconds(3))
    }

    @Test func `Enterprise has the address of its project`() throws {
        let settings = try Self.settings(
            "service: recaptcha-enterprise, project: shop-1, site_key: k, \(Self.rest)"
        )
        let url = "https://recaptchaenterprise.googleapis.com/v1/projects/shop-1/assessments"
        expectEqual(settings.url, url)
        expectEqual(settings.siteKey, "k")
    }

    @Test func `every value is taken`() throws {
        let settings = try Self.settings(
            """
            service: hcaptcha, url: "https://localhost:4443/v", secret_file: s, cookie: test,
            site_key: k, action: order, hostname: [Shop.Example, com.example.shop],
            min_score: 0.1, max_score: 0.7, remote_address: true, timeout: 500ms, rate: 7/s,
            concurrent: 2, queue: 5, proxy: "http://proxy.internal:3128"
            """
        )
        expectEqual(settings.url, "https://localhost:4443/v")
        #expect(settings.siteKey == "k" && settings.action == "order")
        expectEqual(settings.hostnames, ["shop.example", "com.example.shop"])
        #expect(settings.scoreMin?.thousandths == 100 && settings.scoreMax?.thousandths == 700)
        #expect(settings.sendsAddress && settings.calls.timeout == .milliseconds(500))
        let calls = settings.calls
        #expect(calls.perSecond == 7 && calls.concurrent == 2 && calls.queue == 5)
        expectEqual(settings.calls.proxy, "http://proxy.internal:3128")
    }

    @Test func `without a hostname check warns`() {
        let loaded = Self.loaded("service: turnstile, secret_file: s, field: X-T")
        #expect(loaded.configuration != nil)
        expectEqual(loaded.problems.count, 1)
        expectEqual(loaded.problems.first?.text.contains("no hostname"), true)
    }

    @Test(arguments: [
        ("service: turnstile, field: X-T", "secret_file"),
        ("secret_file: s, field: X-T", "service"),
        ("service: captcha, \(rest)", "service"),
        ("service: recaptcha-enterprise, site_key: k, \(rest)", "project"),
        ("service: recaptcha-enterprise, project: p, \(rest)", "site_key"),
        ("service: turnstile, project: p, \(rest)", "no effect"),
        ("service: recaptcha-enterprise, project: ../p, site_key: k, \(rest)", "project"),
        ("service: turnstile, url: \"http://a.test/\", \(rest)", "https://host/path"),
        ("service: turnstile, secret_file: none, field: X-T, hostname: h", "none"),
        ("service: turnstile, secret_file: s, hostname: h", "field"),
        ("service: turnstile, min_score: 2, \(rest)", "a score from 0 to 1"),
        ("service: turnstile, min_score: 0.7, max_score: 0.5, \(rest)", "above the greatest"),
        ("service: turnstile, timeout: 31s, \(rest)", "30s"),
        ("service: turnstile, rate: 0/s, \(rest)", "1/s…1000/s"),
        ("service: turnstile, action: \"a b\", \(rest)", "visible characters"),
        ("service: turnstile, issuer: i, \(rest)", "no effect"),
    ])
    func `a mistake is named`(_ proof: String, _ words: String) {
        let loaded = Self.loaded(proof)
        #expect(loaded.configuration == nil)
        #expect(loaded.problems.contains { $0.text.contains(words) }, "\(loaded.problems)")
    }

    @Test func `a secret is one line that strangers can't read`() {
        let proof = "service: turnstile, \(Self.rest)"
        for secret in ["", "\n", "a b", "a\nb"] {
            #expect(Self.loaded(proof, secret: secret).configuration == nil)
        }
        let open = Self.loaded(proof, mode: 0o644)
        #expect(open.configuration == nil)
        #expect(open.problems.contains { $0.text.contains("open to every user") })
        // Nor does a problem show it.
        let shown = Self.loaded(proof, secret: "hush hush").problems.map(\.text).joined()
        #expect(!shown.contains("hush"))
    }
}
