import LoopbackKit

/// What holds of every head that an origin gets, whatever was sent.
enum ForwardedHead {
    private static let never: Set<String> = [
        "expect", "forwarded", "x-real-ip", "x-original-url", "x-rewrite-url", "proxy",
        "x-http-method-override", "keep-alive", "proxy-connection", "trailer", "http2-settings",
        "client-ip", "x-host", "x-forwarded",
    ]
    /// Of these, no other spelling may pass.
    private static let trusted = ["app-attest", "x-app-attest", "x-forwarded", "content-length"]

    static func fault(_ head: WireHead) -> String? {
        guard head.all("host").count == 1 else { return "\(head.all("host")) as Host" }
        guard head.all("x-forwarded-for") == ["127.0.0.1"] else {
            return "\(head.all("x-forwarded-for")) as X-Forwarded-For"
        }
        guard head.all("via").last?.contains(" ") == true else { return "no Via" }
        guard head.all("upgrade").allSatisfy({ $0.lowercased() == "websocket" }) else {
            return "\(head.all("upgrade")) as Upgrade"
        }
        for field in head.fields {
            let name = field.name.lowercased()
            // As a server may see it that makes CGI variables of fields.
            let folded = String(name.map { $0.isLetter || $0.isNumber ? $0 : "-" })
            let isTwin = folded != name && trusted.contains { folded.hasPrefix($0) }
            if name.contains("_") || never.contains(folded) || isTwin
                || name.contains("app-attest-ver")
            {
                return "\(field.name) reached the origin"
            }
        }
        return nil
    }
}
