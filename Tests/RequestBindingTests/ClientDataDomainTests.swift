import Expectations
import RequestBinding
import Testing

@Suite struct ClientDataDomainTests {
    private static let challenge = "AQK5TG9OsePDnwAAAAAAAAABAAAAAGsBPcgXDVlJPoNH3aeJ2TP69BF3"

    private func domain(_ text: String) -> ClientDataDomain {
        let bytes = Array(text.utf8.prefix(ClientDataDomain.startCount))
        return ClientDataDomain(of: bytes.span)
    }

    private static let lines: [String] = [
        "portcullis-request-v1\nPOST\n/\n-\n-\n", "portcullis-request-v1\n",
        "portcullis-request-v1", "portcullis-request-v2\n", "portcullis-request-v10\n",
        "portcullis-request-v",
    ]
    private static let challenges: [String] = [
        challenge, "AQ" + String(repeating: "-", count: 54),
        "AQ" + String(repeating: "_", count: 54),
    ]
    private static let cut = String(challenge.dropFirst(3))
    private static let contents: [String] = [
        "portcullis-request-", "Portcullis-request-v1\n", " portcullis-request-v1\n",
        "\u{FEFF}portcullis-request-v1\n", "", "-", #"{"item":7}"#, "\(challenge)A",
        "\(challenge)\n", "AQ\(cut)", "BQK\(cut)", "AQ\(cut)=", "AQ\(cut)+", "AQ\(cut)/",
    ]
    private static let all: [(String, ClientDataDomain)] =
        lines.map { ($0, .lines) } + challenges.map { ($0, .challenge) }
        + contents.map { ($0, .content) }

    @Test(arguments: all)
    func `what client data begins with tells its form`(text: String, expected: ClientDataDomain) {
        expectEqual(domain(text), expected)
        // What comes behind the start changes nothing.
        if text.utf8.count >= ClientDataDomain.startCount {
            expectEqual(domain(text + "more"), expected)
        }
    }

    @Test func `each form has a domain of its own`() {
        let forms: [SigningForm] = [.lines(.all, headers: []), .content, .challenge]
        expectEqual(Set(forms.map(\.domain)).count, forms.count)
    }

    /// A request in all that rules of the line form may sign.
    private struct Signed: Hashable {
        var parts: SignedParts
        var method: String?
        var target: String?
        var digest: [UInt8]?
        var challenge: String?
        var headers: [String]
        var values: [String?]
    }

    /// Everything that reads as something else if lines were cut in another way.
    private static let values: [String?] = [nil, "", "-", "x-b", "x-b: -", "GET", challenge]

    private static func headers(_ names: [String]) -> [[(String, String?)]] {
        names.reduce([[]]) { lists, name in
            lists.flatMap { list in values.map { list + [(name, $0)] } }
        }
    }

    @Test func `no two rules of the line form have one client data, nor two requests of one`() {
        var seen: [[UInt8]: Signed] = [:]
        var count = 0
        for rawValue in UInt8(0)...15 {
            let parts = SignedParts(rawValue: rawValue)
            for names in [[], ["x-a"], ["x-b"], ["x-a", "x-b"], ["x-b", "x-a"]] {
                for headers in Self.headers(names) {
                    for method in ["GET", "--"] {
                        for target in ["/", "*", "/-"] {
                            for challenge in [Self.challenge, ""] {
                                let digest = [UInt8](repeating: UInt8(target.count), count: 32)
                                let bytes = RequestLines.clientData(
                                    parts,
                                    of: RequestLines.Request(
                                        method: method,
                                        target: target,
                                        digest: digest,
                                        headers: headers.map { (name: $0.0, value: $0.1) }
                                    ),
                                    challenge: challenge
                                )
                                let signed = Signed(
                                    parts: parts,
                                    method: parts.contains(.method) ? method : nil,
                                    target: parts.contains(.target) ? target : nil,
                                    digest: parts.contains(.body) ? digest : nil,
                                    challenge: parts.contains(.challenge) ? challenge : nil,
                                    headers: names,
                                    values: headers.map(\.1)
                                )
                                count += 1
                                if seen.updateValue(signed, forKey: bytes) ?? signed != signed {
                                    Issue.record("\(String(decoding: bytes, as: UTF8.self))")
                                }
                            }
                        }
                    }
                }
            }
        }
        expectEqual(count, 16 * 113 * 12)
        for bytes in seen.keys {
            let start = Array(bytes.prefix(ClientDataDomain.startCount))
            expectEqual(ClientDataDomain(of: start.span), .lines)
        }
    }

    @Test func `a part that reads as absent is told`() {
        for (text, isAbsent) in [("-", true), ("", false), ("--", false), ("G", false)] {
            let bytes = Array(text.utf8)
            expectEqual(RequestLines.readsAsAbsent(bytes.span), isAbsent)
        }
    }
}
