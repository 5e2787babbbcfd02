/// What an operator changes at a front: one row for each finding and each proxy that causes it.
package struct FrontAdvice: Sendable {
    /// The finding; the raw value is printed.
    package enum Topic: String, CaseIterable, Sendable {
        case absent = "does not arrive"
        case method = "another method"
        case path = "another path"
        case query = "another query"
        case host = "another host"
        case fields = "fields lost or rewritten"
        case long = "long fields refused"
        case content = "no content"
        case size = "part of the content, or large content refused"
        case decoded = "content decoded"
        case rewritten = "content rewritten"
        case unsure = "content not known to be whole"
    }

    /// A proxy, and how it asks where it asks for decisions.
    package enum Front: String, CaseIterable, Sendable {
        case nginx, haproxy = "HAProxy", caddy = "Caddy", traefik = "Traefik", envoy = "Envoy"
        case others = "others"

        fileprivate var forms: Set<String> {
            switch self {
            case .nginx, .haproxy: ["auth_request"]
            case .caddy, .traefik: ["forward_auth"]
            case .envoy: ["ext_authz", "ext_authz_grpc"]
            case .others: []
            }
        }
    }

    package let topic: Topic
    package let front: Front
    package let text: String

    private init(_ topic: Topic, at front: Front, _ text: String) {
        (self.topic, self.front, self.text) = (topic, front, text)
    }

    /// What to do about a finding, for the proxies that ask in a form; for all where none asks.
    package static func text(_ topic: Topic, form: String) -> String {
        let rows = all.filter { row in
            row.topic == topic
                && (form.isEmpty || row.front == .others || row.front.forms.contains(form))
        }
        return rows.map { row in
            row.front == .others ? row.text : "\(row.front.rawValue): \(row.text)"
        }.joined(separator: "; ")
    }

    package static let all = [
        FrontAdvice(
            .absent,
            at: .others,
            "see whether the front sends every path to this gateway, and asks it about every path; "
                + "in a fleet, try while the front has this gateway alone"
        ),
        FrontAdvice(.method, at: .others, "take out what obeys X-HTTP-Method-Override"),
        FrontAdvice(.path, at: .nginx, "merge_slashes off; no path after the name in proxy_pass"),
        FrontAdvice(.path, at: .haproxy, "no http-request normalize-uri, no replace-path"),
        FrontAdvice(.path, at: .caddy, "no uri, rewrite or handle_path before the gateway"),
        FrontAdvice(
            .path,
            at: .traefik,
            "it does this by itself; have apps sign paths without //, dot segments and escapes"
        ),
        FrontAdvice(
            .path,
            at: .envoy,
            "normalize_path: false, merge_slashes: false, path_with_escaped_slashes_action: "
                + "KEEP_UNCHANGED"
        ),
        FrontAdvice(.query, at: .traefik, "it writes & for ;, so have apps send no ;"),
        FrontAdvice(.query, at: .others, "take out what sorts or cleans queries, as caches do"),
        FrontAdvice(.host, at: .nginx, "proxy_set_header Host $http_host"),
        FrontAdvice(.host, at: .envoy, "no host_rewrite of a route"),
        FrontAdvice(
            .host,
            at: .others,
            "pass Host on as the client has sent it, unless that is wanted"
        ),
        FrontAdvice(
            .fields,
            at: .nginx,
            "no proxy_set_header of these names, nor a proxy_pass_request_headers off"
        ),
        FrontAdvice(.fields, at: .envoy, "add the names to allowed_headers"),
        FrontAdvice(.fields, at: .traefik, "no authRequestHeaders without the names"),
        FrontAdvice(.fields, at: .others, "pass these fields on as they came"),
        FrontAdvice(.long, at: .nginx, "large_client_header_buffers 4 16k"),
        FrontAdvice(.long, at: .haproxy, "tune.bufsize 65536"),
        FrontAdvice(.long, at: .envoy, "max_request_headers_kb: 60"),
        FrontAdvice(.long, at: .others, "allow heads of 16 KiB"),
        FrontAdvice(
            .content,
            at: .nginx,
            "it sends no content with auth_request: forward what is signed to a listener without "
                + "decides"
        ),
        FrontAdvice(
            .content,
            at: .haproxy,
            "http-request wait-for-body, and the script of the example"
        ),
        FrontAdvice(
            .content,
            at: .caddy,
            "it sends no content with forward_auth: forward what is signed to a listener without "
                + "decides"
        ),
        FrontAdvice(.content, at: .traefik, "forwardBody: true"),
        FrontAdvice(.content, at: .envoy, "with_request_body, over gRPC with pack_as_bytes: true"),
        FrontAdvice(.content, at: .others, "content: whole for the listener that is asked"),
        FrontAdvice(.size, at: .nginx, "client_max_body_size as large as the rule's body.limit"),
        FrontAdvice(.size, at: .haproxy, "tune.bufsize of the content, its head and 4 KiB"),
        FrontAdvice(.size, at: .caddy, "request_body max_size as large as the rule's body.limit"),
        FrontAdvice(
            .size,
            at: .traefik,
            "maxBodySize and maxRequestBodyBytes as large as body.limit"
        ),
        FrontAdvice(
            .size,
            at: .envoy,
            "allow_partial_message: false, and max_request_bytes over the rule's body.limit"
        ),
        FrontAdvice(.size, at: .others, "or a smaller body.limit, so that apps are refused early"),
        FrontAdvice(.decoded, at: .envoy, "no decompressor filter for requests before ext_authz"),
        FrontAdvice(.decoded, at: .others, "let encoded requests pass as they are"),
        FrontAdvice(
            .rewritten,
            at: .others,
            "take out the plug-in, script or WAF that writes content"
        ),
        FrontAdvice(.unsure, at: .haproxy, "the script of the example, which states the length"),
        FrontAdvice(.unsure, at: .envoy, "with_request_body, over gRPC with pack_as_bytes: true"),
        FrontAdvice(.unsure, at: .others, "content: whole for the listener that is asked"),
    ]
}
