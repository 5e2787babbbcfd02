import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

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
            OwnFields.removeProof(from: &request, ProofFields())
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
