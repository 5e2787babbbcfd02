/// The fields that the gateway knows by name; all others are `other`.
///
/// Fewer than 64, so that a ``FieldKindSet`` is one word.
package enum FieldKind: UInt8, CaseIterable, Sendable {
    case other
    /// A name with an underscore. Servers that make CGI variables of fields can't tell it from its
    /// twin with hyphens.
    case underscored
    /// The name of a known field with other bytes for its hyphens, as `App.Attest.Verdict`. Some
    /// servers make the same CGI variable of it (lighttpd, older Apache).
    case disguised
    // Routing and framing.
    case host, contentLength, transferEncoding, trailer
    // Hop by hop (RFC 9110 §7.6.1).
    case connection, keepAlive, proxyConnection, te, upgrade, http2Settings
    case proxyAuthenticate, proxyAuthorization
    // Meant for the gateway or changed by it.
    case expect, maxForwards, via, date
    // What the previous hop says of the client.
    case forwarded, xForwardedFor, xForwardedProto, xForwardedHost, xForwardedPort
    /// Any other `X-Forwarded-…`, `Front-End-Https`, `X-MS-Client-Principal-…` and similar fields.
    case hopStatement
    /// `X-Real-IP`, `Client-IP`, `X-Cluster-Client-IP` and similar fields.
    case clientAddress
    /// `X-Original-URL`, `X-HTTP-Host-Override`, `X-Envoy-…` and similar fields: some origins route
    /// by them.
    case targetOverride
    /// `X-HTTP-Method-Override`, `X-Method-Override`, `X-HTTP-Method`: some origins obey them.
    case methodOverride
    /// `Proxy`, which CGI turns into `HTTP_PROXY` ("httpoxy").
    case proxy
    /// `X-Request-Id`, and the fields of W3C Trace Context: by what name others know the request.
    case requestID, traceparent, tracestate
    // The client's and the gateway's statements.
    case appAttestKeyID, appAttestAssertion, appAttestChallenge, appAttestUnsupported
    case appAttestSession, appAttestSequence, appAttestSignature
    case appAttestVerdict, appAttestReason, appAttestAppID
    /// Of requests to the gateway; of origins' responses, and of requests to them.
    case appAttestDeviceToken, appAttestDeviceBits
    /// Any other `App-Attest-…` or `X-App-Attest-…`.
    case appAttestOther
    // Content and credentials.
    case contentDigest, contentType, contentEncoding, authorization, cookie
    // Of responses.
    case setCookie, wwwAuthenticate, server
    case cacheControl, expires, lastModified
    /// `CDN-Cache-Control` (RFC 9213) and similar fields. The caches that they are for read them
    /// in place of Cache-Control.
    case targetedCacheControl
}

/// A set of field kinds, one bit each.
package struct FieldKindSet: OptionSet, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    @inline(__always)
    package init(_ kind: FieldKind) { rawValue = 1 &<< UInt64(kind.rawValue) }

    package init(_ kinds: [FieldKind]) {
        rawValue = kinds.reduce(0) { $0 | FieldKindSet($1).rawValue }
    }

    @inline(__always)
    package func contains(_ kind: FieldKind) -> Bool { rawValue &>> UInt64(kind.rawValue) & 1 != 0 }
}

extension FieldKindSet {
    /// Never forwarded in either direction: RFC 9110 §7.6.1, and the framing fields, which the
    /// gateway writes itself.
    package static let hopByHop = FieldKindSet([
        .connection, .keepAlive, .proxyConnection, .te, .transferEncoding, .trailer, .upgrade,
        .http2Settings, .proxyAuthenticate, .proxyAuthorization, .contentLength,
    ])

    /// Fields that name the client; believed from trusted proxies only (RFC 7239 §8).
    package static let provenance = FieldKindSet([
        .forwarded, .xForwardedFor, .xForwardedProto, .xForwardedHost, .xForwardedPort,
        .hopStatement, .clientAddress,
    ])

    /// Fields by which a client makes some origins see another request than the matched one.
    package static let overrides = FieldKindSet([.targetOverride, .methodOverride, .proxy])

    /// The request's place in a trace; believed from trusted proxies only.
    package static let trace = FieldKindSet([.traceparent, .tracestate])

    /// The verdict, which only the gateway writes. `App-Attest-Key-Id` and the device's bits are in
    /// it, since the origin gets them from the gateway. The device token is for the gateway.
    package static let verdict = FieldKindSet([
        .appAttestVerdict, .appAttestReason, .appAttestKeyID, .appAttestAppID,
        .appAttestDeviceToken, .appAttestDeviceBits, .appAttestOther,
    ])

    /// All fields of the client's proof.
    package static let proof = FieldKindSet([
        .appAttestKeyID, .appAttestAssertion, .appAttestChallenge, .appAttestUnsupported,
    ])

    /// A client's proof by session. No rule forwards it, not even one that verifies nothing: the
    /// session is valid elsewhere.
    package static let session = FieldKindSet([
        .appAttestSession, .appAttestSequence, .appAttestSignature,
    ])

    /// Never forwarded from any client: the set to begin with. ``ProvenanceWriter`` writes again
    /// the statements of a trusted proxy that it believes.
    package static let neverToOrigin: FieldKindSet = [
        hopByHop, provenance, overrides, trace, verdict, session,
        FieldKindSet([.requestID, .underscored, .disguised, .expect]),
    ]

    /// Fields that the origin never gets as the client sent them: the gateway removes them or
    /// writes its own. A signature over such a field says nothing about the field that the origin
    /// reads.
    ///
    /// `Host` is not in it: the client's value is signed and also decides the rule.
    package static let neverAsSent: FieldKindSet = [
        neverToOrigin, proof, FieldKindSet([.via, .maxForwards]),
    ]

    /// Never forwarded from an origin: the client must not take an origin's statement for the
    /// gateway's.
    package static let neverToClient: FieldKindSet = [
        hopByHop, verdict, session, FieldKindSet([.appAttestChallenge]),
    ]

    static let caching = FieldKindSet([
        .cacheControl, .expires, .lastModified, .targetedCacheControl,
    ])

    /// Fields that no CORS preflight has; see ``RequestHead/isPreflight(_:)``.
    static let neverInPreflight: FieldKindSet = [
        proof, verdict, session,
        FieldKindSet([
            .authorization, .cookie, .contentType, .contentEncoding, .contentDigest, .expect,
            .upgrade, .http2Settings, .methodOverride,
        ]),
    ]

    /// Fields that Connection can't remove by naming them (RFC 9110 §7.6.1 ¶9).
    static let endToEnd: FieldKindSet = [
        provenance, verdict, proof, session,
        FieldKindSet([
            .host, .contentLength, .transferEncoding, .maxForwards, .via, .date, .contentDigest,
            .contentType, .contentEncoding, .authorization, .cookie, .setCookie, .wwwAuthenticate,
        ]),
    ]

    /// Kinds of which two lines make a request ambiguous (RFC 9110 §5.3 ¶2). Host and
    /// Content-Length have reasons of their own.
    static let singletons = FieldKindSet([.contentType, .authorization, .expect])

    /// Trailer fields that are dropped: framing, routing, credentials, and fields that decisions
    /// rest on (RFC 9110 §6.5.1).
    package static let forbiddenInTrailers: FieldKindSet = [
        hopByHop, endToEnd, overrides, FieldKindSet([.underscored, .disguised, .expect]),
    ]
}

extension FieldKind {
    /// The kind of a name, in any case.
    package init(name: [UInt8]) { self = KnownFieldNames.kind(name.span, 0..<name.count) }
}

/// Fields that one origin gets although they are deleted by default: `keep_fields`.
///
/// A previous hop's statement about the client (`CF-Connecting-IP`) is kept from trusted proxies
/// only, since any client can write it. Fields that make an origin see another request
/// (`X-HTTP-Method-Override`), and an app's trace (`traceparent`), are the client's to write, and
/// kept from all peers.
package struct KeptFields: Sendable {
    /// Fields that are kept from all peers.
    package private(set) var fromAll = FieldNameSet()
    /// Fields that are kept from trusted proxies, those of ``fromAll`` included.
    package private(set) var fromProxies = FieldNameSet()
    /// Whether a trusted proxy's X-Forwarded-Host is kept.
    package private(set) var keepsHost = false
    /// Whether traceparent is kept.
    package private(set) var keepsTrace = false

    /// `names`: of fields for which ``isKeepable(_:)`` is true.
    package init(_ names: [String] = []) {
        for name in names {
            let bytes = Array(name.utf8)
            let kind = FieldKind(name: bytes)
            if FieldKindSet.overrides.union(.trace).contains(kind) { fromAll.insert(bytes) }
            if kind == .traceparent { keepsTrace = true }
            if kind == .xForwardedHost { keepsHost = true }
            fromProxies.insert(bytes)
        }
    }

    /// Whether a field is deleted by default and may be kept. Fields that the gateway writes itself
    /// may not be kept. `Proxy` may not either: it has no use, and CGI turns it into `HTTP_PROXY`.
    package static func isKeepable(_ name: String) -> Bool {
        let kind = FieldKind(name: Array(name.utf8))
        switch kind {
        case .forwarded, .xForwardedFor, .xForwardedProto, .proxy: return false
        default: return FieldKindSet([.provenance, .overrides, .trace]).contains(kind)
        }
    }
}
