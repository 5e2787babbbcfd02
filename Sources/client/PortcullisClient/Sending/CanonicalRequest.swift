import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A request in the one spelling in which every system sends it as it stands, so that what is
/// signed is what is sent.
///
/// libcurl, below URLSession on Linux, removes dot segments (RFC 3986 §5.2.4), and every system
/// leaves the fragment out. Both are done here, before the target is signed. An empty path becomes
/// `/`, a `?` with nothing after it is dropped, and the host is in lower case. Percent-escapes
/// stay untouched.
struct CanonicalRequest: Sendable {
    /// Without content.
    var request: URLRequest
    /// Where it goes.
    let url: URL
    /// Path and query, as in the request line.
    let target: String

    /// The method as in the request line. URLRequest itself writes `get` as `GET`.
    var method: String { request.httpMethod ?? "GET" }

    /// `nil` for a request without a URL of HTTP.
    ///
    /// - Parameters:
    ///   - request: what the caller wrote.
    ///   - isHandshake: whether it may open a WebSocket instead (RFC 6455 §3).
    init?(_ request: URLRequest, isHandshake: Bool = false) {
        guard let (url, target) = request.url.flatMap(Self.canonical),
            isHandshake && request.httpMethod ?? "GET" == "GET" || !Self.opensWebSocket(url)
        else { return nil }
        self.request = request
        self.request.url = url
        self.request.httpBody = nil
        self.request.httpBodyStream = nil
        (self.url, self.target) = (url, target)
    }

    private static func opensWebSocket(_ url: URL) -> Bool {
        ["ws", "wss"].contains(url.scheme?.lowercased())
    }

    /// Who a URL belongs to: scheme, host and port. A WebSocket is a request of HTTP at first, and
    /// belongs to the server that answers that.
    struct Origin: Hashable, Sendable {
        let scheme: String
        let host: String
        let port: Int

        init?(_ url: URL) {
            let schemes = ["http": "http", "https": "https", "ws": "http", "wss": "https"]
            guard let scheme = url.scheme.flatMap({ schemes[$0.lowercased()] }),
                let place = RequestPlace(url)
            else { return nil }
            self.scheme = scheme
            host = place.host
            port = url.port ?? (scheme == "https" ? 443 : 80)
        }

        /// Whether a secret may be asked for there: no one else reads it, because of TLS or because
        /// it does not leave the machine (RFC 6761 §6.3, RFC 1122 §3.2.1.3).
        var keepsSecrets: Bool {
            if scheme == "https" || host == "[::1]" { return true }
            if host == "localhost" || host.hasSuffix(".localhost") { return true }
            let numbers = host.split(separator: ".", omittingEmptySubsequences: false)
            return numbers.count == 4 && numbers.allSatisfy { UInt8($0) != nil }
                && numbers[0] == "127"
        }
    }

    /// The field `Host` as URLSession writes it for a canonical request: the host of its URL, and
    /// the port where it is not the scheme's own (RFC 9110 §7.2).
    static func host(_ request: URLRequest) -> String? {
        guard let url = request.url, let origin = Origin(url),
            let authority = RequestPlace.authority(of: url.absoluteString[...])
        else { return nil }
        let place = authority[(authority.lastIndex(of: "@") ?? authority.startIndex)...]
            .drop { $0 == "@" }
        let port = url.port.map { ":\($0)" } ?? ""
        let host = place.hasSuffix(port) ? place.dropLast(port.count) : place
        let isUsual = origin.port == (origin.scheme == "https" ? 443 : 80)
        return isUsual ? String(host) : "\(host)\(port)"
    }

    static func canonical(_ url: URL) -> (URL, target: String)? {
        guard Origin(url) != nil else { return nil }
        let text = url.absoluteURL.absoluteString.prefix { $0 != "#" }
        guard let authority = RequestPlace.authority(of: text) else { return nil }
        let target = text[authority.endIndex...]
        let path = target.prefix { $0 != "?" }
        let query = target[path.endIndex...].dropFirst()
        let canonical = withoutDots(path) + (query.isEmpty ? "" : "?" + query)
        guard canonical.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            let url = URL(string: text[..<authority.startIndex] + named(authority) + canonical)
        else { return nil }
        return (url, canonical)
    }

    /// An authority with its host in lower case, so that `Host` is the same wherever it is written.
    private static func named(_ authority: Substring) -> String {
        let start = authority.lastIndex(of: "@") ?? authority.startIndex
        return authority[..<start] + authority[start...].lowercased()
    }

    /// A path without the segments `.` and `..` (RFC 3986 §5.2.4).
    private static func withoutDots(_ path: Substring) -> String {
        var kept: [Substring] = []
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        for (place, segment) in segments.enumerated() {
            switch segment {
            case ".", "..":
                if segment == ".." { _ = kept.popLast() }
                if place == segments.count - 1 { kept.append("") }
            default: kept.append(segment)
            }
        }
        return "/" + kept.joined(separator: "/")
    }
}

/// Where an answer sends the client on (RFC 9110 §15.4).
struct Redirect: Sendable {
    /// The next request. It carries no proof: that stands for one target.
    let request: URLRequest
    /// Whether the content goes with it.
    let keepsContent: Bool

    /// `nil` for an answer that is no redirect, or one to follow that would leave TLS.
    ///
    /// - Parameters:
    ///   - response: the answer.
    ///   - sent: the request that it answers, as the caller wrote it.
    init?(_ response: HTTPURLResponse, to sent: CanonicalRequest) {
        guard [301, 302, 303, 307, 308].contains(response.statusCode),
            let location = response.value(forHTTPHeaderField: "Location"),
            let url = URL(string: location, relativeTo: sent.url)?.absoluteURL,
            let from = CanonicalRequest.Origin(sent.url),
            let to = CanonicalRequest.Origin(url),
            !(from.scheme == "https" && to.scheme == "http")
        else { return nil }
        var request = sent.request
        request.url = url
        if from != to {
            OwnFields.removeProof(from: &request, ProofFieldNames())
            for name in ["Authorization", "Cookie", "Proxy-Authorization"] {
                request.setValue(nil, forHTTPHeaderField: name)
            }
        }
        let method = sent.method
        // 301 and 302 turn POST into GET, as browsers and URLSession do (§15.4.2 note).
        let becomesGet =
            response.statusCode == 303 && method != "HEAD"
            || [301, 302].contains(response.statusCode) && method == "POST"
        if becomesGet {
            request.httpMethod = "GET"
            let names = [
                "Content-Type", "Content-Length", "Content-Encoding", "Content-Language",
                OwnFields.contentDigest,
            ]
            for name in names { request.setValue(nil, forHTTPHeaderField: name) }
        }
        self.request = request
        keepsContent = !becomesGet
    }
}
