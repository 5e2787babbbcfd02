/// Why the gateway can't serve a request here or now, whatever its rule. The raw value is the
/// wire's `reason`: add, do not rename.
package enum LocalFault: String, CaseIterable, Sendable {
    // Requests on their way.
    case loopDetected = "loop-detected"
    case headTimeout = "head-timeout"
    case bodyTimeout = "body-timeout"
    // Queries of other proxies.
    case askerUntrusted = "asker-untrusted"
    case questionUnclear = "question-unclear"
    case protocolRefused = "protocol-refused"
    case fieldDisguised = "field-disguised"
    // Services of the public listeners.
    case endpointUnknown = "no-such-endpoint"
    case methodNotAllowed = "method-not-allowed"
    // Services of the operators' listener.
    case pageUnknown = "page-unknown"
    case methodRefused = "method-refused"
    case contentRefused = "content-refused"
    case hostRefused = "host-refused"
    case crossSite = "cross-site"
    case tokenMissing = "token-missing"
    case tokenWrong = "token-wrong"
    case gatherTimeout = "gather-timeout"
    case draining = "draining"
    case drained = "drained"
    case storeDegraded = "store-degraded"
    case serversUnknown = "servers-unknown"
    case originsDown = "origins-down"
    case noSuchServer = "no-such-server"
    case noSuchRule = "no-such-rule"
    case ruleVerifiesNothing = "rule-verifies-nothing"
    case rolloutUnsaved = "rollout-unsaved"
    case rolloutStale = "rollout-stale"
    case upgradeRefused = "upgrade-refused"
    case upgradeRunning = "upgrade-running"
    case noSuchRefusal = "no-such-refusal"
    case noSuchGateway = "no-such-gateway"
}

extension LocalRow {
    /// The rows of requests that can't be served here or now.
    static func fault(_ fault: LocalFault) -> LocalRow {
        switch fault {
        case .loopDetected:
            // RFC 5842 §7.2. A gateway must not send a request to itself for ever (RFC 9110 §7.6).
            LocalRow(508, .gateway, .unsaid, "The request has passed this gateway before.")
        case .headTimeout:
            LocalRow(408, .client, .unsaid, "The request's head did not arrive in time.")
        case .bodyTimeout:
            LocalRow(408, .client, .unsaid, "The request's content did not arrive in time.")
        case .askerUntrusted:
            LocalRow(403, .gateway, .unsaid, "This address may not ask for decisions.")
        case .questionUnclear:
            LocalRow(400, .gateway, .unsaid, "The question does not name one request.")
        case .protocolRefused:
            LocalRow(400, .client, .fixClient, "The request asks for a protocol but WebSocket.")
        case .fieldDisguised:
            LocalRow(400, .client, .fixClient, "A field's name can be taken for another one.")
        case .endpointUnknown:
            LocalRow(404, .client, .fixClient, "The gateway has no such endpoint.")
        case .methodNotAllowed:
            LocalRow(405, .client, .fixClient, "The endpoint has no such method.", .allow)
        case .pageUnknown: LocalRow(404, .client, .fixClient, "There is no such page.")
        case .methodRefused:
            LocalRow(405, .client, .fixClient, "The page has no such method.", .allow)
        case .contentRefused:
            LocalRow(
                413,
                .client,
                .fixClient,
                "Requests with content are not served.",
                ending: .connection
            )
        case .hostRefused:
            LocalRow(
                403,
                .client,
                .fixClient,
                "Ask by an IP address, localhost or a name of admin.hosts."
            )
        case .crossSite:
            LocalRow(403, .client, .fixClient, "A page of another site has sent the request.")
        case .tokenMissing:
            LocalRow(401, .client, .fixClient, "This call needs the operators' token.", .bearer)
        case .tokenWrong:
            LocalRow(401, .client, .fixClient, "This is not the operators' token.", .bearer)
        case .gatherTimeout: later(503, .gateway, "The event loops did not answer in time.")
        case .draining: later(503, .gateway, "The gateway ends.")
        case .drained: later(503, .gateway, "Operators have drained the gateway.")
        case .storeDegraded: later(503, .gateway, "The key store can't be used.")
        case .serversUnknown: later(503, .gateway, "No server of any origin has an address.")
        case .originsDown: later(503, .origin, "No server of any origin can serve.")
        case .noSuchServer:
            LocalRow(404, .client, .fixClient, "No origin has a server of this name.")
        case .noSuchRule: LocalRow(404, .client, .fixClient, "There is no rule of this id.")
        case .ruleVerifiesNothing:
            LocalRow(409, .client, .fixClient, "The rule's file does not say how to verify.")
        case .rolloutUnsaved: later(503, .gateway, "The change could not be saved.")
        case .rolloutStale:
            LocalRow(409, .client, .retryLater, "The fleet has a newer order; look, then decide.")
        case .upgradeRefused: later(503, .gateway, "There was no upgrade; nothing has changed.")
        case .upgradeRunning:
            LocalRow(409, .gateway, .retryLater, "An upgrade is under way; try again afterwards.")
        case .noSuchRefusal:
            LocalRow(404, .client, .fixClient, "No refusal of this name is remembered.")
        case .noSuchGateway:
            LocalRow(404, .client, .fixClient, "The fleet has no gateway of this name.")
        }
    }
}
