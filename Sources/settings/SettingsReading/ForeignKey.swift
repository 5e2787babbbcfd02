/// Keys that people know from nginx, HAProxy, Envoy and other proxies, and what serves here in
/// their place.
///
/// A key close in spelling is no help there: the nearest key to `timeouts.read` is another one.
package enum ForeignKey {
    /// The words of other proxies for a section's keys.
    private struct Section {
        /// Keys that together only this section has.
        package let marks: [String]
        /// Words as they are, in lower case and with underscores, and what to use here.
        package let words: [(of: [String], use: String)]
    }

    /// The own key to use in place of an unknown one; `nil` where no other proxy has it.
    ///
    /// - keys: the keys that are allowed beside it.
    package static func use(for key: String, among keys: [String]) -> String? {
        let word = key.lowercased().replacing("-", with: "_")
        guard let section = sections.first(where: { $0.marks.allSatisfy(keys.contains) }) else {
            return nil
        }
        return section.words.first { $0.of.contains(word) }?.use
    }

    private static let sections = [timeouts, limits, origin, listener, tls, rule, match, file]

    private static let timeouts = Section(
        marks: ["body_idle"],
        words: [
            (
                [
                    "read", "read_header", "header", "headers", "client", "client_header",
                    "http_request", "request", "request_headers", "client_body", "body",
                ], "head for a request's head, body_idle for the next byte of its content"
            ),
            (
                [
                    "write", "send", "server", "upstream", "backend", "proxy", "proxy_read",
                    "response", "route", "origin", "client_send",
                ],
                """
                first_byte for the begin of a response, response_idle for its next byte, \
                origins.NAME.total_timeout for all of it
                """
            ),
            (["proxy_connect", "connection", "dial"], "connect"),
            (
                ["keepalive", "keep_alive", "http_keep_alive", "keepalive_timeout"],
                "idle for clients' connections, pool_idle for those to origins"
            ), (["tls", "ssl", "tls_handshake", "transport_socket_connect"], "handshake"),
            (["tunnel", "websocket", "stream", "stream_idle"], "tunnel_idle"),
            (["queue"], "origins.NAME.queue: { timeout: 1s }"),
            (["shutdown", "graceful_shutdown", "grace", "hard_stop_after"], "drain"),
            (["check", "health_check"], "origins.NAME.check: { timeout: 2s }"),
        ]
    )

    private static let limits = Section(
        marks: ["held_memory"],
        words: [
            (
                [
                    "body", "body_size", "max_body", "max_body_size", "client_max_body_size",
                    "request_body", "content", "content_length",
                ], "body: { limit: 1MiB } in the rule of these requests"
            ),
            (
                [
                    "header", "headers", "header_size", "max_header_size", "request_headers",
                    "large_client_header_buffers", "client_header_buffer_size",
                ], "head for the bytes of a head, fields for their number"
            ), (["uri", "url", "request_line"], "target"),
            (
                ["maxconn", "max_connections", "worker_connections", "global_connections"],
                "connections, or address_connections for one address"
            ),
            (
                ["rate", "requests", "rate_limit", "limit_req", "requests_per_second"],
                "address_requests: 100/s, and address_burst"
            ), (["keepalive", "pool", "pool_size", "max_idle"], "pooled"),
        ]
    )

    private static let origin = Section(
        marks: ["slow_start"],
        words: [
            (
                [
                    "server", "address", "addresses", "url", "urls", "target", "targets",
                    "upstream", "backend", "endpoint", "endpoints", "proxy_pass", "hosts",
                ], "servers: [10.0.0.5:8080]"
            ),
            (
                ["timeout", "timeouts", "read_timeout", "proxy_read_timeout", "server_timeout"],
                "connect_timeout, first_byte_timeout, total_timeout"
            ),
            (
                ["health", "health_check", "health_checks", "healthcheck", "option_httpchk"],
                "check: { path: /healthz }"
            ),
            (
                [
                    "policy", "lb", "lb_policy", "load_balancing", "algorithm", "lb_method",
                    "load_balancer",
                ], "balance"
            ),
            (
                ["outlier_detection", "max_fails", "fail_timeout", "circuit_breaker"],
                "eject: { failures: 3, time: 10s }"
            ), (["ssl", "https", "transport_socket"], "tls: { ca: origin-ca.pem }"),
            (["keepalive", "pool_idle"], "timeouts.pool_idle, limits.pooled"),
            (
                ["maxconn", "max_connections"],
                "servers: [{ address: 10.0.0.5:8080, max_connections: 100 }]"
            ), (["send_proxy", "proxy_header"], "proxy_protocol"),
            (["host_header", "host_rewrite", "host_rewrite_literal", "server_name"], "host"),
        ]
    )

    private static let listener = Section(
        marks: ["decides"],
        words: [
            (["port", "bind", "host", "ip", "socket"], "address: 0.0.0.0:8443"),
            (
                [
                    "ssl", "https", "cert", "crt", "certificate", "key", "ssl_certificate",
                    "ssl_certificate_key",
                ], "tls: { certificate: fullchain.pem, key: key.pem }"
            ), (["accept_proxy", "proxy"], "proxy_protocol"), (["h2", "alpn"], "http2: on"),
        ]
    )

    private static let tls = Section(
        marks: ["certificate", "key"],
        words: [
            (
                ["cert", "crt", "chain", "fullchain", "cert_file", "ssl_certificate", "pem"],
                "certificate"
            ), (["private_key", "key_file", "ssl_certificate_key"], "key"),
            (
                [
                    "protocols", "ssl_protocols", "min_version", "ssl_min_ver", "version",
                    "versions",
                ],
                "minimum: \"1.2\""
            ),
            (
                ["ca_file", "client_ca", "verify", "ssl_client_certificate", "mtls"],
                "client: { ca: clients.pem, require: true } at a listener, ca at an origin"
            ), (["sni", "servername"], "server_name at an origin"),
            (
                ["ssl_ciphers", "cipher_suites", "ciphersuites", "ssl_conf_command"],
                "ciphers: [TLS_AES_128_GCM_SHA256, ECDHE-ECDSA-AES128-GCM-SHA256]"
            ), (["ssl_ecdh_curve", "ecdh_curves", "groups"], "curves: [X25519, P-256]"),
            (
                ["crl_file", "crl", "ssl_crl"],
                "client: { ca: clients.pem, crl: crl.pem, require: required } at a listener"
            ),
        ]
    )

    private static let rule = Section(
        marks: ["rollout"],
        words: [
            (
                [
                    "path", "paths", "uri", "location", "prefix", "host", "hosts", "method",
                    "methods", "matches",
                ], "match: { host: api.example.com, method: [POST], path: /v1/orders }"
            ), (["name"], "id"),
            (
                ["backend", "upstream", "proxy_pass", "cluster", "service", "server", "to"],
                "origin"
            ), (["action", "enforce", "enforcement"], "mode: off | observe | enforce | deny"),
            (["percent", "percentage", "share", "weight"], "rollout: { percent: 5% }"),
            (
                ["limit", "max_body_size", "client_max_body_size", "body_limit"],
                "body: { limit: 1MiB }"
            ),
            (
                ["timeout", "proxy_read_timeout"],
                "origins.NAME.first_byte_timeout, or total_timeout"
            ),
        ]
    )

    private static let match = Section(
        marks: ["host", "method", "path"],
        words: [
            (["paths", "uri", "url", "prefix", "location", "path_prefix"], "path: /v1/**"),
            (["methods", "verb", "verbs"], "method: [GET, POST]"),
            (["hosts", "server_name", "domain", "domains", "authority"], "host"),
        ]
    )

    private static let file = Section(
        marks: ["trusted_proxies"],
        words: [
            (
                ["server", "servers", "bind", "frontend", "frontends", "listener", "listeners"],
                "listen: [{ address: 0.0.0.0:8443 }]"
            ), (["port", "address"], "listen: [{ address: 0.0.0.0:8443 }]"),
            (
                ["upstream", "upstreams", "backend", "backends", "cluster", "clusters"],
                "origins: { api: { servers: [10.0.0.5:8080] } }"
            ), (["route", "routes", "location", "locations", "virtual_hosts"], "rules"),
            (
                ["tls", "ssl", "certificates", "certificate"],
                "listen: [{ address: …, tls: { certificate: …, key: … } }]"
            ),
            (
                ["access_log", "error_log", "log_level", "logging", "logs"],
                "log: { access: on, level: info }"
            ),
            (
                ["workers", "worker_processes", "threads", "nbthread", "concurrency", "cpus"],
                "event_loops"
            ), (["metrics", "stats", "status"], "admin: { address: 127.0.0.1:9901 }"),
            (
                ["set_real_ip_from", "real_ip", "real_ip_from", "trusted_proxy"],
                "trusted_proxies"
            ), (["user", "group", "chroot"], "process"),
            (["timeout", "keepalive_timeout", "client_timeout"], "timeouts"),
            (["database", "db", "redis", "sqlite", "postgresql"], "store"),
        ]
    )
}
