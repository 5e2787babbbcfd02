import Cryptography
import Encodings
package import HTTPWire
import Verification

/// A response that the gateway makes itself: a problem document (RFC 9457), or the answer of a
/// service.
///
/// It is made from an outcome, whose row decides status and fields. A problem tells the client its
/// next step, and nothing about the policy. Every problem has `App-Attest-Error`. By this field a
/// client distinguishes it from an origin's response with the same status and content.
package struct LocalResponse: Sendable {
    /// The data of a problem beside its row.
    package struct Details: Sendable {
        /// A fresh challenge as base64url text, for problems with the next step "sign again".
        package var challenge: String?
        /// What requests have to sign, as parameters of a 401's challenge; empty where the problem
        /// does not say it.
        package var signing = ""
        /// Seconds to wait, at least 1, for problems with the next step "later".
        package var waitSeconds = 1
        /// The methods that a 405 lists.
        package var allowed: [Method] = []
        /// A further list of texts in the document, and its name.
        package var list: (name: String, texts: [String])?

        package init(challenge: String? = nil, waitSeconds: Int = 1) {
            self.challenge = challenge
            self.waitSeconds = waitSeconds
        }
    }

    package let outcome: LocalOutcome
    private(set) var contentType: StaticString
    /// The status of a gRPC call, which has no other status of HTTP than 200; `nil` for any other
    /// response.
    private var call: GRPCStatus?
    /// Fields beside those that every response has.
    package private(set) var fields: [(name: String, value: String)] = []
    /// Further field lines, in the form in which they are sent.
    private(set) var lines: [UInt8] = []
    package private(set) var content: [UInt8]
    /// Which caches may keep it, and for how long. The default is none (RFC 9111 §5.2.2.5), since
    /// it is for this request only.
    private(set) var caching: StaticString = "no-store"

    /// The answer to a request that is not served. `outcome` is not ``LocalOutcome/done(_:)``.
    package init(_ outcome: LocalOutcome, _ details: Details = Details()) {
        let row = outcome.row
        var document = JSONWriter(.compact)
        document.object { document in
            document.member("type", "about:blank")
            document.member("title", row.title)
            document.member("status", row.status)
            document.member("reason", outcome.reason)
            if row.nextStep != .unsaid { document.member("next", row.nextStep.rawValue) }
            if row.nextStep == .signAgain, let challenge = details.challenge {
                document.member("challenge", challenge)
            }
            if let (name, texts) = details.list { document.texts(name, texts) }
        }
        self.init(outcome, as: "application/problem+json", document.line)
        addFields(row, details)
    }

    /// The answer of a service.
    ///
    /// - challenge: for the client's next request.
    package init(
        _ success: LocalSuccess,
        as contentType: StaticString,
        _ content: [UInt8],
        challenge: String? = nil
    ) {
        self.init(.done(success), as: contentType, content)
        if let challenge { fields.append(("App-Attest-Challenge", challenge)) }
    }

    /// A success that caches may keep.
    ///
    /// - tag: its entity tag, with its quotes.
    init(
        _ success: LocalSuccess,
        as contentType: StaticString,
        _ content: [UInt8],
        tag: String,
        caching: StaticString
    ) {
        self.init(.done(success), as: contentType, content)
        self.caching = caching
        fields.append(("ETag", tag))
    }

    /// The entity tag of content, with its quotes. Of content alone, so that gateways that serve
    /// the same have the same tag.
    static func tag(of content: [UInt8]) -> String {
        "\"\(Hex.text(SHA256.digest(of: content).array.prefix(16)))\""
    }

    /// A success without content.
    package init(empty success: LocalSuccess) { self.init(.done(success), as: "", []) }

    /// Tells the asking proxy that it may forward a request.
    ///
    /// - lines: field lines for the origin.
    /// - notes: fields for the client.
    package init(allowing lines: [UInt8], notes: [(name: StaticString, value: String)]) {
        self.init(empty: .allowed)
        self.lines = lines
        fields = notes.map { ($0.name.description, $0.value) }
    }

    private init(_ outcome: LocalOutcome, as contentType: StaticString, _ content: [UInt8]) {
        self.outcome = outcome
        self.contentType = contentType
        self.content = content
    }

    /// Adds the name of the request to the document of a problem.
    package mutating func name(_ id: RequestID) {
        // The document is an object that was written here, with a line feed.
        guard !outcome.reason.isEmpty, content.suffix(2) == Array("}\n".utf8) else { return }
        content.removeLast(2)
        content += Array(#","request_id":""#.utf8)
        id.append(to: &content)
        content += Array("\"}\n".utf8)
    }

    /// Becomes the answer to a gRPC call: a head that is also the trailers ("Trailers-Only"). The
    /// document of the problem becomes its message.
    package mutating func answer(_ form: GRPCForm) {
        guard !outcome.reason.isEmpty else { return }
        let row = outcome.row
        contentType = form.contentType
        call = row.grpc
        fields.append(("grpc-status", String(row.grpc.rawValue)))
        fields.append(("grpc-message", Self.percentEncoded(content.dropLast())))
        content = []
    }

    /// As the protocol of gRPC wants messages: printable ASCII but the percent sign stays.
    private static func percentEncoded(_ text: ArraySlice<UInt8>) -> String {
        var encoded = ""
        for byte in text {
            if (0x20...0x7E).contains(byte), byte != UInt8(ascii: "%") {
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                encoded += byte < 16 ? "%0" + digits : "%" + digits
            }
        }
        return encoded
    }

    /// The message of a call of its own, which another answer becomes, and `grpc-status` after it.
    package init(answering message: [UInt8]) {
        let count = UInt32(message.count)
        let length = stride(from: 24, through: 0, by: -8).map {
            UInt8(truncatingIfNeeded: count >> $0)
        }
        self.init(.done(.served), as: GRPCForm.plain.contentType, [0] + length + message)
        call = .ok
    }

    /// Whether trailers with the status of a gRPC call follow the content.
    package var endsCall: Bool { call == .ok }

    private mutating func addFields(_ row: LocalRow, _ details: Details) {
        // An item with a parameter (RFC 8941 §3.3). Fields of this family are deleted from origins'
        // responses, so that a client recognises the gateway by it.
        let next = row.nextStep == .unsaid ? "" : ";next=\(row.nextStep.rawValue)"
        fields.append(("App-Attest-Error", outcome.reason + next))
        switch row.companion {
        case .none: break
        case .authenticate:
            var value = #"AppAttest error="\#(outcome.reason)""#
            value += #", next="\#(row.nextStep.rawValue)""#
            if row.nextStep == .signAgain, let challenge = details.challenge {
                value += #", challenge="\#(challenge)""#
            }
            if !details.signing.isEmpty { value += ", " + details.signing }
            fields.append(("WWW-Authenticate", value))
        case .bearer: fields.append(("WWW-Authenticate", #"Bearer realm="portcullis""#))
        case .allow:
            fields.append(("Allow", details.allowed.map(\.rawValue).joined(separator: ", ")))
        case .retryAfter:
            fields.append(("Retry-After", String(max(details.waitSeconds, 1))))
        }
        if row.nextStep == .signAgain, let challenge = details.challenge {
            fields.append(("App-Attest-Challenge", challenge))
        }
    }

    /// The status in the table.
    package var status: Int { outcome.status }

    /// Adds a field to the answer of a service.
    mutating func add(_ name: String, _ value: String) { fields.append((name, value)) }

    /// A 304 ends with its head. A length would be that of the response that it replaces (RFC 9110
    /// §8.6).
    private var framing: BodyFraming {
        outcome == .done(.unchanged) ? .none : .length(UInt64(content.count))
    }

    /// Appends head and content. For HEAD only the head, which still describes the content (RFC
    /// 9110 §9.3.2).
    package func write(
        into out: inout [UInt8],
        date: [UInt8],
        connection: HeadWriter.ConnectionField,
        isHead: Bool
    ) {
        HeadWriter.beginLocalResponse(
            status: call == nil ? status : 200,
            date: date,
            framing: framing,
            connection: connection,
            into: &out
        )
        if !content.isEmpty || call != nil {
            HeadWriter.field("Content-Type", contentType, into: &out)
            HeadWriter.field("X-Content-Type-Options", "nosniff", into: &out)
        }
        HeadWriter.field("Cache-Control", caching, into: &out)
        for (name, value) in fields {
            HeadWriter.field(text: Array(name.utf8), Array(value.utf8), into: &out)
        }
        out += lines
        HeadWriter.endHead(into: &out)
        if !isHead { out.append(contentsOf: content) }
    }
}

// The answer to Envoy's `envoy.service.auth.v3.Authorization/Check`.
//
//     CheckResponse       1 status, 2 denied_response, 3 ok_response
//     Status              1 code
//     DeniedHttpResponse  1 status: 1 code, 2 headers, 3 body
//     OkHttpResponse      2 headers, 5 headers_to_remove, 6 response_headers_to_add
//     HeaderValueOption   1 header: 1 key, 2 value; 3 append_action
//
// Envoy obeys the status: a denied response beside status 0 would be forwarded.
extension LocalResponse {
    /// `OVERWRITE_IF_EXISTS_OR_ADD`: a client's own field of the same name goes.
    private static let overwrites: UInt64 = 2
    /// Over HTTP this field lists what Envoy removes.
    private static let removal = "x-envoy-auth-headers-to-remove"

    /// The call's answer, which says to Envoy what this answer says over HTTP.
    package func answeringCheck() -> LocalResponse {
        var message = ProtobufWriter()
        if case .done(.allowed) = outcome {
            message.message(1) { _ in }
            message.message(3) { allow(&$0) }
        } else {
            let row = outcome.row
            let code = row.grpc == .ok ? GRPCStatus.permissionDenied : row.grpc
            message.message(1) { $0.field(1, UInt64(code.rawValue)) }
            message.message(2) { deny(&$0) }
        }
        return LocalResponse(answering: message.bytes)
    }

    private func allow(_ message: inout ProtobufWriter) {
        for line in lines.split(separator: UInt8(ascii: "\n")) {
            // Each line was written here: name, colon, space, value, and a carriage return.
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            let name = String(decoding: line[..<colon], as: UTF8.self).lowercased()
            let value = line[colon...].dropFirst(2).dropLast()
            if name == Self.removal {
                for removed in String(decoding: value, as: UTF8.self).split(separator: ", ") {
                    message.field(5, removed.lowercased().utf8)
                }
            } else {
                Self.header(2, name: name, value, into: &message)
            }
        }
        for field in fields { add(field, as: 6, to: &message) }
    }

    private func deny(_ message: inout ProtobufWriter) {
        message.message(1) { $0.field(1, UInt64(status)) }
        if !content.isEmpty {
            add(("content-type", contentType.description), as: 2, to: &message)
        }
        add(("cache-control", caching.description), as: 2, to: &message)
        for field in fields { add(field, as: 2, to: &message) }
        message.field(3, content)
    }

    private func add(
        _ field: (name: String, value: String),
        as number: UInt64,
        to message: inout ProtobufWriter
    ) {
        let name = field.name.lowercased()
        Self.header(number, name: name, field.value.utf8, into: &message)
    }

    private static func header(
        _ number: UInt64,
        name: String,
        _ value: some Collection<UInt8>,
        into message: inout ProtobufWriter
    ) {
        message.message(number) { option in
            option.message(1) { header in
                header.field(1, name.utf8)
                header.field(2, value)
            }
            option.field(3, overwrites)
        }
    }
}
