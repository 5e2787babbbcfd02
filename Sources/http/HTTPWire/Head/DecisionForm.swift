/// How another proxy names the request for which it wants a decision.
///
/// The proxy names it in fields that it sets itself, or in the request line. A client can send
/// these fields too. A proxy that replaces them leaves one line of each. Two lines, or none, name
/// no request.
package enum DecisionForm: String, CaseIterable, Sendable {
    /// `X-Original-Method`, `X-Original-URI` and `X-Original-Host`: nginx's `auth_request`, where
    /// the configuration names these fields, and HAProxy's script.
    case authRequest = "auth_request"
    /// `X-Forwarded-Method`, `X-Forwarded-Uri` and `X-Forwarded-Host`: Caddy's `forward_auth` and
    /// Traefik's `forwardAuth`.
    case forwardAuth = "forward_auth"
    /// The method, target and `Host` of the question itself: Envoy's `ext_authz` over HTTP.
    case extAuthz = "ext_authz"
    /// The message of the call `envoy.service.auth.v3.Authorization/Check`: Envoy's `ext_authz`
    /// over gRPC. It is a form of its own: over HTTP a client chooses the path and the content of a
    /// question, and could ask about a request that it does not send.
    case extAuthzGRPC = "ext_authz_grpc"

    /// The fields with the method, the target and the host; `nil` where the question's own count.
    private var names: (method: StaticString, target: StaticString, host: StaticString)? {
        switch self {
        case .authRequest: ("x-original-method", "x-original-uri", "x-original-host")
        case .forwardAuth: ("x-forwarded-method", "x-forwarded-uri", "x-forwarded-host")
        case .extAuthz, .extAuthzGRPC: nil
        }
    }

    /// Whether the head of the named request has to be written, since it is not the question's own.
    package var isWritten: Bool { names != nil }

    /// Whether the answer lists the client's fields that the proxy removes.
    package var namesRemoved: Bool {
        switch self {
        case .extAuthz, .extAuthzGRPC: true
        case .authRequest, .forwardAuth: false
        }
    }

    /// Writes the head of the named request, for the parser that reads all heads.
    ///
    /// The head has the fields of the question, without those of its own hop, and the question's
    /// content. The target must be in origin-form, or `*`: proxies forward no other form (RFC 9112
    /// §3.2), so an authority in it would be another party's word.
    ///
    /// - Returns: whether the question names one request. If not, the written bytes are no head.
    package func write(
        _ question: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        into out: inout [UInt8]
    ) -> Bool {
        guard let names, let method = question.fields.only(bytes, names.method),
            let target = question.fields.only(bytes, names.target),
            let host = question.fields.only(bytes, names.host)
        else { return false }
        let isPath = bytes[target.lowerBound] == UInt8(ascii: "/")
        guard isPath || target.count == 1 && bytes[target.lowerBound] == UInt8(ascii: "*")
        else { return false }
        out.append(bytes, method)
        out.append(ASCIIByte.space)
        out.append(bytes, target)
        out.append(" HTTP/1.1\r\n")
        HeadWriter.field("Host", bytes, at: host, into: &out)
        for field in question.fields.fields where !Self.isOfQuestion(field) {
            // Else the request would seem to have an override of its method.
            guard !ByteScan.equal(bytes, field.name, to: names.method),
                !ByteScan.equal(bytes, field.name, to: names.target),
                !ByteScan.equal(bytes, field.name, to: names.host)
            else { continue }
            out.append(bytes, field.name)
            out.append(": ")
            out.append(bytes, field.value)
            out.appendLineEnd()
        }
        if question.framing.hasContent { HeadWriter.framing(question.framing, into: &out) }
        HeadWriter.endHead(into: &out)
        return true
    }

    /// Whether a field is about the question's own connection or content.
    private static func isOfQuestion(_ field: Field) -> Bool {
        field.isNominated || dropped.contains(field.kind)
    }

    /// Upgrade stays: an application may get it, so a request with Upgrade is no preflight.
    private static let dropped: FieldKindSet = [
        .hopByHop.subtracting(FieldKindSet(.upgrade)), FieldKindSet([.host, .expect]),
    ]
}

/// What a listener's clients ask, and whether their questions come with content.
package struct DecisionQuestion: Hashable, Sendable {
    /// The content that comes with a question. The raw value is the configuration's word.
    package enum Content: String, CaseIterable, Sendable {
        /// None. Nothing is known about the request's own content.
        case none
        /// All of the request's content. nginx's `auth_request` and Caddy's `forward_auth` can't
        /// send it.
        case whole
    }

    package let form: DecisionForm
    package let content: Content

    package init(_ form: DecisionForm, content: Content = .none) {
        self.form = form
        self.content = content
    }

    /// How it is asked, for people.
    package var text: String {
        switch content {
        case .none: "\(form.rawValue) asks"
        case .whole: "\(form.rawValue) asks with all content"
        }
    }

    /// What is known of the content of the request that is asked about.
    ///
    /// * `auth_request`: `X-Original-Content-Length` has the number of bytes that the asking script
    ///   has. A proxy that does not send it has not looked at the content.
    /// * `forward_auth`: Traefik says nothing. It asks only when it has all of the content.
    /// * `ext_authz`, `ext_authz_grpc`: where there is content, Envoy adds
    ///   `x-envoy-auth-partial-body`, whatever the client has sent by this name. It does not read
    ///   the content of a request with `Upgrade`.
    package func askedContent(
        of question: borrowing RequestHead,
        _ bytes: Span<UInt8>
    ) -> AskedContent {
        guard content == .whole else { return .unseen }
        switch form {
        case .authRequest:
            guard let value = question.fields.only(bytes, "x-original-content-length"),
                ContentLength.isNumber(bytes, value),
                let count = ContentLength.number(bytes, value)
            else { return .unseen }
            switch question.framing {
            case .none: return count == 0 ? .whole : .unseen
            case .length(let length): return count == length ? .whole : .unseen
            case .chunked, .untilClose: return .counted(count)
            }
        case .forwardAuth: return .whole
        case .extAuthz, .extAuthzGRPC:
            guard !question.fields.contains(.upgrade) else { return .unseen }
            guard question.fields.has(bytes, "x-envoy-auth-partial-body") else {
                return question.framing.hasContent ? .unseen : .whole
            }
            guard let value = question.fields.only(bytes, "x-envoy-auth-partial-body"),
                case .length(let length) = question.framing, length > 0,
                ByteScan.equal(bytes, value, to: "false")
            else { return .unseen }
            return .whole
        }
    }
}

/// What is known of the content that came with a question.
package enum AskedContent: Equatable, Sendable {
    /// There may be other content, or more of it.
    case unseen
    /// It is all of the request's content.
    case whole
    /// It is all of the request's content if it turns out to have this number of bytes.
    case counted(UInt64)
}

extension FieldSection {
    /// Whether a question has Upgrade with another value than `websocket`, or a field of `h2c`.
    ///
    /// A proxy that forwards it hands the connection over to the application's HTTP/2. No proxy
    /// then asks about the further requests on it.
    package func asksForeignProtocol(_ bytes: Span<UInt8>) -> Bool {
        if contains(.http2Settings) { return true }
        guard contains(.upgrade) else { return false }
        guard let upgrade = only(.upgrade) else { return true }
        return !ByteScan.equal(bytes, upgrade.value, to: "websocket")
    }

    /// Whether a question has a name that CGI, WSGI, Rack or PHP can't tell from one that the
    /// gateway knows, or from one of `guarded`. The application would read it as that one.
    package func hasTwin(_ bytes: Span<UInt8>, guarding guarded: FieldNameSet) -> Bool {
        for field in fields {
            if field.isTwinOfKnown(bytes) || guarded.containsTwin(bytes, of: field.name) {
                return true
            }
        }
        return false
    }

    /// The names of fields by which an application could execute another request than the one that
    /// a proxy asks about, or see it at another host. The proxy would forward the client's own.
    /// What Envoy writes itself is not among them.
    package func misleading(_ bytes: Span<UInt8>) -> [String] {
        fields.compactMap { field in
            // The pointer lives for the call only, and the copy is made inside it.
            let name = unsafe bytes.extracting(field.name).withUnsafeBufferPointer {
                unsafe String(decoding: $0, as: UTF8.self).lowercased()
            }
            let misleads =
                switch field.kind {
                case .methodOverride, .proxy, .forwarded, .xForwardedHost, .xForwardedPort: true
                case .targetOverride: !name.hasPrefix("x-envoy-") || name == "x-envoy-original-path"
                case .hopStatement:
                    name.hasPrefix("x-forwarded") && name != "x-forwarded-client-cert"
                default: false
                }
            return misleads ? name : nil
        }
    }

    /// Whether there is a field of this name, in lower case.
    fileprivate func has(_ bytes: Span<UInt8>, _ name: StaticString) -> Bool {
        for field in fields where ByteScan.equal(bytes, field.name, to: name) { return true }
        return false
    }

    /// The value of the field of this name, in lower case; `nil` when it has no line, several, or
    /// an empty one.
    fileprivate func only(_ bytes: Span<UInt8>, _ name: StaticString) -> Range<Int>? {
        var found: Range<Int>?
        for field in fields where ByteScan.equal(bytes, field.name, to: name) {
            guard found == nil else { return nil }
            found = field.value
        }
        return found.flatMap { $0.isEmpty ? nil : $0 }
    }
}
