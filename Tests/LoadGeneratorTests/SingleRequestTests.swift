import ConfigurationReading
import Cryptography
import Expectations
import RequestBinding
import Testing

@testable import LoadGenerator

@Suite struct SingleRequestTests {
    private static let now = UnixTime(seconds: 1_800_000_000)
    private static let content = Array("abc".utf8)

    private func sign(
        _ rule: String,
        path: String = "/a?b=1",
        challenge: String? = "challenge",
        _ fleet: inout DeviceFleet,
        device: Int = 0
    ) throws -> [(name: String, value: String)] {
        let configuration = try #require(RequestTemplateTests.configuration(rule))
        let url = try #require(LoadURL("http://example.com\(path)"))
        var pairing = FleetPairing(fleet, configuration, now: Self.now)
        defer { fleet = pairing.fleet }
        return try SingleRequest(
            LoadPlan.Request(method: "PUT", url: url),
            content: Self.content,
            challenge: challenge,
            by: &pairing,
            device: device
        ).fields
    }

    private func fleet(_ appID: String = "TEAM123456.com.example") -> DeviceFleet {
        var fleet = DeviceFleet(seed: "seed", appID: appID, count: 2)
        fleet.nextCounter = 7
        return fleet
    }

    @Test func `a signed request has the fields that its rule names, and uses one counter`() throws
    {
        var fleet = fleet()
        let rule = "sign: [method, target, body, challenge], fields: { key_id: x-key }"
        let fields = try sign(rule, &fleet)
        expectEqual(
            fields.map(\.name),
            [
                "x-key", "app-attest-assertion", "app-attest-challenge", "content-digest",
            ]
        )
        expectEqual(fields[2].value, "challenge")
        expectEqual(fields[3].value, "sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:")
        expectEqual(fleet.nextCounter, 8)
        let other = try sign(rule, &fleet, device: 1)
        #expect(other[0].value != fields[0].value)
        expectEqual(fleet.nextCounter, 9)
    }

    @Test func `a request without a challenge signs none`() throws {
        var fleet = fleet()
        let fields = try sign("sign: [method, target]", challenge: nil, &fleet)
        expectEqual(fields.map(\.name), ["app-attest-key-id", "app-attest-assertion"])
    }

    @Test func `the lines of one field are signed as one value`() throws {
        let lines: [(name: String, value: String)] = [
            ("X-Tenant", "a"), ("host", "api.example"), ("x-tenant", "b"),
        ]
        let url = try #require(LoadURL("http://example.com/"))
        let rule = "sign: [method], headers: [host, x-tenant]"
        let demand = try #require(RequestTemplateTests.demand(rule))
        for (fields, host, tenant) in [(lines, "api.example", "a, b"), ([], "example.com", nil)] {
            let request = LoadPlan.Request(method: "GET", url: url, fields: fields)
            let lines = RequestLines.clientData(
                .method,
                of: RequestLines.Request(
                    method: "GET",
                    target: "/",
                    digest: [],
                    headers: [("host", host), ("x-tenant", tenant)]
                ),
                challenge: nil
            )
            let hash = RequestTemplate(demand, of: request).hash(0, challenge: [])
            expectEqual(hash, SHA256.digest(of: lines).array)
        }
    }

    @Test func `a run sends the host that a field names, or else the URL's`() throws {
        let url = try #require(LoadURL("http://127.0.0.1:8080/a"))
        func host(_ fields: [(name: String, value: String)]) -> String {
            LoadPlan.Request(method: "GET", url: url, fields: fields).host
        }
        expectEqual(host([("HOST", "api.example"), ("x-a", "1")]), "api.example")
        expectEqual(host([("x-a", "1")]), "127.0.0.1:8080")
    }

    @Test func `what is missing for a signature is said, and uses no counter`() throws {
        let all = "sign: [method, target, body, challenge]"
        var fleet = fleet()
        for (path, challenge, device) in [("/a", nil, 0), ("/b", "c", 0), ("/a", "c", 2)] {
            #expect(throws: LoadError.self) {
                try sign(all, path: path, challenge: challenge, &fleet, device: device)
            }
        }
        expectEqual(fleet.nextCounter, 7)
        fleet.nextCounter = .max
        #expect(throws: LoadError.self) { try sign(all, &fleet) }
    }
}
