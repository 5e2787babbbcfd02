import Encodings
import HTTPWire

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
                Self.header(2, name, value, &message)
            }
        }
        for field in fields { Self.header(6, field.name.lowercased(), field.value.utf8, &message) }
    }

    private func deny(_ message: inout ProtobufWriter) {
        message.message(1) { $0.field(1, UInt64(status)) }
        if !content.isEmpty {
            Self.header(2, "content-type", contentType.description.utf8, &message)
        }
        Self.header(2, "cache-control", caching.description.utf8, &message)
        for field in fields { Self.header(2, field.name.lowercased(), field.value.utf8, &message) }
        message.field(3, content)
    }

    private static func header(
        _ number: UInt64,
        _ name: String,
        _ value: some Collection<UInt8>,
        _ message: inout ProtobufWriter
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
