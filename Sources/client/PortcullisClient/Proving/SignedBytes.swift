import Foundation
import RequestBinding

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What of a request is signed.
struct SignedBytes: Sendable {
    let method: String
    let target: String
    let digest: [UInt8]
    let content: RequestContent
    /// All fields that are sent.
    let request: URLRequest

    /// - settled: the request as it will be sent, but for the proof.
    init(_ request: CanonicalRequest, _ content: ReplayableContent, settled: URLRequest) {
        method = request.method
        target = request.target
        digest = content.digest
        self.content = content.content
        self.request = settled
    }

    /// The client data of an assertion; `nil` where the request lacks what the form signs.
    func clientData(_ form: SigningForm, challenge: String?) -> ClientData? {
        switch form {
        case .lines(let parts, let headers):
            return described(headers).map { request in
                .bytes(RequestLines.clientData(parts, of: request, challenge: challenge))
            }
        case .content: return .digest(digest)
        case .challenge: return challenge.map { .bytes(Array($0.utf8)) }
        }
    }

    /// The client data of a session's signature.
    func clientData(_ form: SigningForm, sequence: SequenceNumber) -> [UInt8]? {
        guard case .lines(let parts, let headers) = form else { return nil }
        return described(headers).map { request in
            RequestLines.clientData(parts, of: request, sequence: sequence)
        }
    }

    /// Client data, or their digest where they are the content.
    enum ClientData: Sendable {
        case bytes([UInt8])
        case digest([UInt8])
    }

    /// Whether a signed value may have this byte: printable ASCII, a space or a tab.
    private static func isSignable(_ byte: UInt8) -> Bool {
        (0x20...0x7E).contains(byte) || byte == 0x09
    }

    /// The request with these signed fields; `nil` where a part can't be signed.
    private func described(_ headers: [String]) -> RequestLines.Request? {
        // A lone "-" reads as a part that is not signed.
        guard method != "-", let fields = fields(headers) else { return nil }
        return RequestLines.Request(
            method: method,
            target: target,
            digest: digest,
            headers: fields
        )
    }

    /// The signed fields as the gateway reads them: without space around the value.
    private func fields(_ names: [String]) -> [(name: String, value: String?)]? {
        var fields: [(name: String, value: String?)] = []
        for name in names {
            let written = request.value(forHTTPHeaderField: name)
            // The one field that no URLRequest has and every request carries.
            let value = (written ?? (name == "host" ? CanonicalRequest.host(request) : nil))?
                .trimmingCharacters(in: CharacterSet(charactersIn: " \t"))
            // A line's end would begin another line, and HTTP stacks differ in the bytes that they
            // write for what is not ASCII.
            guard value?.utf8.allSatisfy(Self.isSignable) != false else { return nil }
            fields.append((name, value))
        }
        return fields
    }
}
