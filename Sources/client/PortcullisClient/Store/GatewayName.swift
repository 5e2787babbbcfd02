import Foundation

/// The name of a gateway's record: the origin of its endpoints, so that each gateway of an app has
/// a record of its own.
struct GatewayName: Hashable, Sendable {
    /// `api.example.com`, or `api.example.com:8443`. The port of HTTPS is left out.
    let text: String
    /// Names by which earlier builds of this library called it.
    let formerTexts: [String]
    /// The endpoints, as the record itself names them.
    let endpoints: String

    /// `nil` for a URL that is none of HTTP.
    init?(_ endpoints: URL) {
        guard let origin = CanonicalRequest.Origin(endpoints) else { return nil }
        let isUsual = origin.scheme == "https" && origin.port == 443
        let text = isUsual ? origin.host : "\(origin.host):\(origin.port)"
        let host = endpoints.host(percentEncoded: true) ?? "gateway"
        let written = endpoints.port.map { "\(host):\($0)" } ?? host
        self.text = text
        formerTexts = [written, "gateway"].filter { $0 != text }
        self.endpoints = endpoints.absoluteString
    }

    /// The same for a file.
    var fileText: String { text.replacing(":", with: "_") }

    /// Whether a record is this gateway's.
    func owns(_ record: Data) -> Bool { EnrolmentRecord.gateway(of: record) == endpoints }
}
