import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What URLSession's cache may keep of an answer. What the gateway says in one is for the request
/// that it answers: out of a cache it would be obeyed again and again.
enum CachedAnswer {
    private static let spokenFields = [OwnFields.next, OwnFields.challenge]

    /// An answer as it may be kept; `nil` where it may not.
    static func kept(_ proposed: CachedURLResponse) -> CachedURLResponse? {
        guard let response = proposed.response as? HTTPURLResponse else { return proposed }
        let has = { response.value(forHTTPHeaderField: $0) != nil }
        guard !has(OwnFields.error), !isRefusal(response) else { return nil }
        guard spokenFields.contains(where: has) else { return proposed }
        var fields: [String: String] = [:]
        for case (let name as String, let value as String) in response.allHeaderFields
        where !spokenFields.contains(where: { $0.lowercased() == name.lowercased() }) {
            fields[name] = value
        }
        guard let url = response.url,
            let silent = HTTPURLResponse(
                url: url,
                statusCode: response.statusCode,
                httpVersion: "HTTP/1.1",
                headerFields: fields
            )
        else { return nil }
        return CachedURLResponse(
            response: silent,
            data: proposed.data,
            userInfo: proposed.userInfo,
            storagePolicy: proposed.storagePolicy
        )
    }

    /// Where an answer comes from. A cache that other sessions fill may hold what the gateway said.
    /// So an answer that says the same as a cached one counts as the cache's, which then forgets
    /// it.
    static func source(
        of response: HTTPURLResponse,
        to request: URLRequest,
        _ cache: URLCache?
    ) -> TransportAnswer.Source {
        let isSpoken = [OwnFields.next, OwnFields.error]
            .contains { response.value(forHTTPHeaderField: $0) != nil }
        guard isSpoken || isRefusal(response), let cache,
            let kept = cache.cachedResponse(for: request)?.response as? HTTPURLResponse,
            kept.statusCode == response.statusCode,
            obeyedFields.allSatisfy({
                kept.value(forHTTPHeaderField: $0) == response.value(forHTTPHeaderField: $0)
            })
        else { return .network }
        cache.removeCachedResponse(for: request)
        return .cache
    }

    private static let authenticate = "WWW-Authenticate"
    /// What a client obeys.
    private static let obeyedFields = [OwnFields.next, OwnFields.error, authenticate]

    private static func isRefusal(_ response: HTTPURLResponse) -> Bool {
        response.statusCode == 401
            && response.value(forHTTPHeaderField: authenticate).flatMap(AuthenticateField.init)
                != nil
    }
}
