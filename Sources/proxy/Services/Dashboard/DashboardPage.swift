import Cryptography
import Encodings
import HTTPWire

/// The dashboard's document, assembled from the files of `Page`, and the fields that limit what a
/// browser does with it.
struct DashboardPage: Sendable {
    /// Whether calls are served, in the document's words for its script.
    enum Calls: String, Sendable {
        /// They are not served.
        case none
        /// To callers with the token, those that only read.
        case lookup
        /// To all callers that reach the address.
        case open
        /// To callers with the token.
        case token
    }

    let html: [UInt8]
    let fields: [(name: String, value: String)]

    init(calls: Calls) {
        let style = PackageResources.page_css
        let script =
            PackageResources.text_js + PackageResources.chart_js + PackageResources.figures_js
            + PackageResources.rules_js + PackageResources.groups_js + PackageResources.page_js
            + PackageResources.parts_js + PackageResources.changes_js
        var html = PackageResources.page_html
        Self.fill("{{calls}}", with: Array(calls.rawValue.utf8), in: &html)
        Self.fill("{{style}}", with: style, in: &html)
        Self.fill("{{script}}", with: script, in: &html)
        self.html = html
        // Nothing is loaded. No form can post or navigate, and no page can frame this one. Only
        // this style and this script take effect (Content Security Policy Level 3). Under the last
        // two directives no text can become markup (Trusted Types), whatever the script does.
        let policy = [
            "default-src 'none'", "script-src '\(Self.hash(script))'",
            "style-src '\(Self.hash(style))'", "img-src data:", "connect-src 'self'",
            "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
            "require-trusted-types-for 'script'", "trusted-types 'none'",
        ]
        fields = [
            ("Content-Security-Policy", policy.joined(separator: "; ")),
            ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Resource-Policy", "same-origin"),
        ]
    }

    private static func hash(_ text: [UInt8]) -> String {
        "sha256-" + Base64.text(SHA256.digest(of: text).array)
    }

    /// Replaces the first mark by a text.
    private static func fill(_ mark: String, with text: [UInt8], in page: inout [UInt8]) {
        guard let range = page.firstRange(of: Array(mark.utf8)) else { return }
        page.replaceSubrange(range, with: text)
    }
}

/// `GET /dashboard`: the page that shows the state of the gateway in a browser.
///
/// The page is one document for all callers. Its script polls `/status` and other pages, so an open
/// page costs a few small requests in a minute, whatever the load.
struct DashboardService: Service {
    let page: DashboardPage

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        var response = LocalResponse(.served, as: "text/html; charset=utf-8", page.html)
        for (name, value) in page.fields { response.add(name, value) }
        return .now(ServiceResult(response))
    }
}

extension ServiceEntry {
    /// The page, also at the bare address.
    static func dashboard(_ calls: DashboardPage.Calls) -> [ServiceEntry] {
        let service = DashboardService(page: DashboardPage(calls: calls))
        return ["", "dashboard"].map { name in
            ServiceEntry(name, [.get, .head], on: .init(access: .page), by: service)
        }
    }
}
