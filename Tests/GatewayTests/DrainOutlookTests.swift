import Encodings
import Expectations
import Testing

@testable import Gateway

/// Which origins a drain leaves without a server.
@Suite struct DrainOutlookTests {
    private static let status = """
        {"version": "1.0.0", "rules": [{"id": "a", "origins": [1, {}]}], "origins": [
          {"name": "shop", "requests_waiting": 2, "servers": [
            {"server": "10.0.0.5:80", "address": "10.0.0.5:80", "state": "up", "last_check": null},
            {"server": "10.0.0.6:80", "address": "10.0.0.6:80", "state": "up"}]},
          {"name": "media", "servers": [
            {"server": "10.0.0.5:80", "address": "10.0.0.5:80", "state": "up"},
            {"server": "10.0.0.7:80", "address": "10.0.0.7:80", "state": "drained"}]},
          {"name": "stock", "servers": [
            {"server": "stock.internal:80", "address": "10.0.0.8:80", "state": "up"},
            {"server": "stock.internal:80", "address": "10.0.0.9:80", "state": "up"}]},
          {"name": "none", "servers": []}
        ], "tls": {"certificates": []}}
        """

    @Test(arguments: [
        ("10.0.0.5:80", ["media"]), ("10.0.0.6:80", []), ("10.0.0.7:80", []),
        ("Stock.internal:80", ["stock"]), ("nobody:1", []),
    ])
    func `an origin is out when no other server of it is up`(_ server: String, _ origins: [String])
        throws
    {
        let outlook = try DrainOutlook(without: server, Array(Self.status.utf8).span)
        expectEqual(outlook.origins, origins)
    }

    @Test func `a page that can't be read says nothing`() {
        for text in ["", "[]", #"{"origins": 1}"#, #"{"origins": [{"servers": 1}]}"#] {
            #expect(throws: JSONError.self) {
                try DrainOutlook(without: "a:1", Array(text.utf8).span)
            }
        }
    }
}
