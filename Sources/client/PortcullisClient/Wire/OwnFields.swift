import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The fields that the client writes, and those that URLSession adds.
enum OwnFields {
    static let session = "App-Attest-Session"
    static let sequence = "App-Attest-Sequence"
    static let signature = "App-Attest-Signature"
    static let deviceToken = "App-Attest-Device-Token"
    static let next = "App-Attest-Next"
    static let error = "App-Attest-Error"
    /// The next challenge, in answers. Requests may have it in a field of another name.
    static let challenge = "App-Attest-Challenge"
    static let contentDigest = "Content-Digest"

    /// Takes every proof and device token off a request: each stands for one request to one target.
    static func removeProof(from request: inout URLRequest, _ fields: ProofFieldNames) {
        let usual = ProofFieldNames()
        let names = [
            fields.keyID, fields.assertion, fields.challenge, fields.unsupported, usual.keyID,
            usual.assertion, usual.challenge, usual.unsupported, session, sequence, signature,
            deviceToken,
        ]
        for name in names { request.setValue(nil, forHTTPHeaderField: name) }
    }

    /// Writes signed fields that URLSession would write later, as it would. A field that it adds
    /// after the signature would make that worthless.
    static func settle(_ headers: [String], in request: inout URLRequest, hasContent: Bool) {
        for name in headers where request.value(forHTTPHeaderField: name) == nil {
            switch name {
            case "content-type" where hasContent:
                request.setValue(
                    "application/x-www-form-urlencoded",
                    forHTTPHeaderField: "Content-Type"
                )
            case "accept": request.setValue("*/*", forHTTPHeaderField: "Accept")
            case "accept-language":
                request.setValue(languages, forHTTPHeaderField: "Accept-Language")
            case "accept-encoding":
                request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
            case "user-agent":
                request.setValue("PortcullisClient", forHTTPHeaderField: "User-Agent")
            default: break
            }
        }
    }

    /// Writes the cookies that are sent into the request, and keeps URLSession from adding or
    /// replacing any after the signature. A field that the caller wrote stays as it is.
    ///
    /// - cookies: those of the transport's jar.
    static func settleCookies(_ cookies: String?, in request: inout URLRequest) {
        if request.httpShouldHandleCookies, request.value(forHTTPHeaderField: "Cookie") == nil {
            request.setValue(cookies, forHTTPHeaderField: "Cookie")
        }
        request.httpShouldHandleCookies = false
    }

    /// The user's languages, the first one first: `de-CH, en;q=0.9`.
    private static var languages: String {
        let weighted = Locale.preferredLanguages.prefix(6).enumerated().map { place, name in
            place == 0 ? name : "\(name);q=0.\(10 - place)"
        }
        return weighted.isEmpty ? "*" : weighted.joined(separator: ", ")
    }

    /// Says what the content's digest is, beside digests that the caller wrote.
    static func setContentDigest(_ digest: [UInt8], in request: inout URLRequest) {
        let own = "sha-256=:\(Data(digest).base64EncodedString()):"
        let others = (request.value(forHTTPHeaderField: contentDigest) ?? "")
            .split(separator: ",")
            .map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.isEmpty && !$0.hasPrefix("sha-256=") }
        let value = (others + [own]).joined(separator: ", ")
        request.setValue(value, forHTTPHeaderField: contentDigest)
    }
}
