import Crypto
import Foundation
import RequestBinding

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A request as a gateway reads it, and what it would have signed.
struct SentRequest {
    private let request: URLRequest
    private let content: Data

    init(_ request: URLRequest, _ content: Data) {
        (self.request, self.content) = (request, content)
    }

    private var target: String {
        let text = request.url?.absoluteString ?? ""
        let rest = text.dropFirst("https://".count)
        return String(rest[(rest.firstIndex(of: "/") ?? rest.endIndex)...])
    }

    private func fields(_ names: [String]) -> [(name: String, value: String?)] {
        names.map { ($0, request.value(forHTTPHeaderField: $0)) }
    }

    func clientData(_ form: SigningForm, _ challenge: String?) -> [UInt8]? {
        switch form {
        case .content: return Array(content)
        case .challenge: return challenge.map { Array($0.utf8) }
        case .lines(let parts, let headers):
            return RequestLines.clientData(
                parts,
                of: RequestLines.Request(
                    method: request.httpMethod ?? "",
                    target: target,
                    digest: Array(SHA256.hash(data: content)),
                    headers: fields(headers)
                ),
                challenge: challenge
            )
        }
    }

    func clientData(_ form: SigningForm, sequence: String) -> [UInt8]? {
        guard case .lines(let parts, let headers) = form else { return nil }
        return clientData(.lines(parts.union(.challenge), headers: headers), sequence)
    }
}
