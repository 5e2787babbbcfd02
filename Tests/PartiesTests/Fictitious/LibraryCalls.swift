import Encodings
import OutboundCalls

@testable import Parties

/// A question about a card.
struct LibraryCall: OutboundCall {
    let proof: String
    let card: [UInt8]
    let timeout: Duration

    var host: String { proof }
    var kind: String { proof }
    var family: String { proof }
}

/// The library as a party that is called.
struct LibraryCalls: CalledParty {
    private var libraries: TokenParties<LibrarySettings>

    init(_ settings: [LibrarySettings]) { libraries = TokenParties(settings, \.name) }

    mutating func replace(by settings: [LibrarySettings]) {
        libraries.replace(by: settings, \.name)
    }

    func limits(of host: String) -> CallLine.Limits? { libraries[host]?.calls.limits }

    func obstacle(to call: LibraryCall) -> CallFailure? {
        libraries[call.proof] == nil ? .noHost : nil
    }

    func written(_ call: LibraryCall, at wall: Int64) -> CallRequest {
        guard let library = libraries[call.proof] else {
            preconditionFailure("LibraryCalls: a call with an obstacle is written")
        }
        var json = JSONWriter()
        json.object { $0.member("card", String(decoding: call.card, as: UTF8.self)) }
        var request = CallRequest(
            url: library.url,
            fields: [],
            contentType: "application/json",
            content: json.bytes
        )
        request.roots = library.calls.roots
        return request
    }

    func renews(_ refused: CallRequest, of call: LibraryCall) -> Bool { false }
}
