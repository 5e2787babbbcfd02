import ByteCoding
import Cryptography
import HTTPWire

/// The dashboard's document, put together from the files of `Page`, and the fields that bound
/// what a browser does with it.
struct DashboardPage: Sendable {
    /// Whether calls are served, as the document tells its script.
    enum Calls: String, Sendable {
        /// They are not.
        case none
        /// To who reaches the address.
        case open
        /// To who shows the token.
        case token
    }

    let html: [UInt8]
    let fields: [(name: String, value: String)]

    init(calls: Calls) {
        let style = PackageResources.page_css
        let script =
            PackageResources.text_js + PackageResources.chart_js + PackageResources.figures_js
            + PackageResources.rules_js + PackageResources.page_js + PackageResources.parts_js
            + PackageResources.changes_js
        var html = PackageResources.page_html
        Self.fill("{{calls}}", with: Array(calls.rawValue.utf8), in: &html)
        Self.fill("{{style}}", with: style, in: &html)
        Self.fill("{{script}}", with: script, in: &html)
        self.html = html
        // Nothing is loaded, nothing can be framed, posted or navigated by a form, and only this
        // style and this script take effect (Content Security Policy Level 3). Under the last two
        // directives no text can become markup (Trusted Types), whatever the script did.
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

    /// Puts a text in the place of the first mark.
    private static func fill(_ mark: String, with text: [UInt8], in page: inout [UInt8]) {
        guard let range = page.firstRange(of: Array(mark.utf8)) else { return }
        page.replaceSubrange(range, with: text)
    }
}

/// `GET /dashboard`: the page that shows in a browser how the gateway stands.
///
/// The page is one document, the same for all who ask. Its script asks `/status` and other pages
/// again and again, so an open page costs a few small requests in a minute, whatever the load.
struct DashboardService: Service {
    let page: DashboardPage

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        var response = LocalResponse(.served, "text/html; charset=utf-8", page.html)
        for (name, value) in page.fields { response.add(name, value) }
        return .now(ServiceResult(response))
    }
}

extension ServiceEntry {
    /// The page, also where the address alone is typed.
    static func dashboard(_ calls: DashboardPage.Calls) -> [ServiceEntry] {
        let service = DashboardService(page: DashboardPage(calls: calls))
        return ["", "dashboard"].map { name in
            ServiceEntry(
                name,
                [.get, .head],
                takesContent: false,
                cost: .nothing,
                access: .page,
                service
            )
        }
    }
}
