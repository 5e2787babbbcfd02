import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The cookies of a URLSession's configuration.
struct CookieJar: Sendable {
    private let storage: HTTPCookieStorage?
    private let isSent: Bool
    private let isKept: Bool

    init(_ configuration: URLSessionConfiguration) {
        storage = configuration.httpCookieStorage
        isSent = configuration.httpShouldSetCookies
        isKept = configuration.httpCookieAcceptPolicy != .never
    }

    /// The value of `Cookie` for a URL; `nil` for none.
    func field(for url: URL?) -> String? {
        guard isSent, let url = url.flatMap(Self.ofCookies),
            let cookies = storage?.cookies(for: url), !cookies.isEmpty
        else { return nil }
        return HTTPCookie.requestHeaderFields(with: cookies)["Cookie"]
    }

    /// Keeps what an answer sets, by the storage's policy.
    func keep(_ response: HTTPURLResponse, to request: URLRequest) {
        guard isKept, let url = response.url.flatMap(Self.ofCookies),
            let fields = response.allHeaderFields as? [String: String]
        else { return }
        let cookies = HTTPCookie.cookies(withResponseHeaderFields: fields, for: url)
        storage?.setCookies(cookies, for: url, mainDocumentURL: request.mainDocumentURL)
    }

    /// A URL as storages know it: the handshake of a WebSocket has the cookies of HTTP (RFC 6455
    /// §4.1).
    private static func ofCookies(_ url: URL) -> URL? {
        let schemes = ["ws": "http", "wss": "https"]
        guard let scheme = url.scheme.flatMap({ schemes[$0.lowercased()] }) else { return url }
        var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        parts?.scheme = scheme
        return parts?.url
    }
}
