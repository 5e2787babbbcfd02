import Foundation
import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a driver does wrong on purpose, so that a test sees that cases fail.
package enum Misconduct: String, Sendable, CaseIterable {
    /// Sends an order again that may have run.
    case insists
    /// Takes every 401 for the gateway's.
    case obeysEveryone
    /// Uses no challenge of an answer.
    case dropsChallenges
    /// Keeps no record.
    case forgets
}

/// The network, with answers as a client with a misconduct reads them.
struct MisreadingTransport: HTTPTransport {
    private let misconduct: Misconduct?
    private let transport = URLSessionTransport()

    init(_ misconduct: Misconduct?) { self.misconduct = misconduct }

    func prepared(_ request: URLRequest) -> URLRequest { transport.prepared(request) }

    func send(_ request: URLRequest, content: RequestContent) async throws -> TransportAnswer {
        let answer = try await transport.send(request, content: content)
        guard let misconduct, let response = misconduct.changed(answer.response) else {
            return answer
        }
        return TransportAnswer(response: response, content: answer.content)
    }
}

extension Misconduct {
    /// An answer as a client with this misconduct takes it; `nil` where it is taken as it is.
    fileprivate func changed(_ response: HTTPURLResponse) -> HTTPURLResponse? {
        var fields: [String: String] = [:]
        for (name, value) in response.allHeaderFields {
            fields["\(name)".lowercased()] = "\(value)"
        }
        switch self {
        case .insists, .forgets: return nil
        case .obeysEveryone:
            guard response.statusCode == 401, fields["app-attest-error"] == nil else { return nil }
            fields["app-attest-error"] = "key-unknown;next=enrol"
        case .dropsChallenges:
            fields["app-attest-challenge"] = nil
            let words = fields["www-authenticate"]?.components(separatedBy: ", ")
            fields["www-authenticate"] = words?.filter { !$0.hasPrefix("challenge=") }
                .joined(separator: ", ")
        }
        guard let url = response.url else { return nil }
        return HTTPURLResponse(
            url: url,
            statusCode: response.statusCode,
            httpVersion: "HTTP/1.1",
            headerFields: fields
        )
    }
}
