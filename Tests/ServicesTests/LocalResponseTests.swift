import Expectations
import Foundation
import HTTPWire
import Testing
import Verification

@testable import Services

@Suite struct LocalResponseTests {
    private func fields(_ response: LocalResponse) -> [String: String] {
        Dictionary(response.fields) { first, _ in first }
    }

    private func document(_ response: LocalResponse) throws -> [String: Any] {
        let parsed = try JSONSerialization.jsonObject(with: Data(response.content))
        return try #require(parsed as? [String: Any])
    }

    private func text(
        _ response: LocalResponse,
        _ connection: HeadWriter.ConnectionField = .keep,
        isHead: Bool = false
    ) -> String {
        var out: [UInt8] = []
        let date = Array("Thu, 01 Jan 1970 00:00:00 GMT".utf8)
        response.write(into: &out, date: date, connection: connection, isHead: isHead)
        return String(decoding: out, as: UTF8.self)
    }

    @Test func `a 401 names the scheme and hands over a challenge`() throws {
        let response = LocalResponse(
            .refused(.counterReplayed),
            LocalResponse.Details(challenge: "AQEA")
        )
        expectEqual(response.status, 401)
        let fields = fields(response)
        expectEqual(
            fields["WWW-Authenticate"],
            #"AppAttest error="counter-replayed", next="sign-again", challenge="AQEA""#
        )
        expectEqual(fields["App-Attest-Challenge"], "AQEA")
        let document = try document(response)
        #expect(document["type"] as? String == "about:blank")
        #expect(document["status"] as? Int == 401)
        #expect(document["reason"] as? String == "counter-replayed")
        #expect(document["next"] as? String == "sign-again")
        #expect(document["challenge"] as? String == "AQEA")
    }

    @Test(arguments: [
        (
            Refusal.challengeSpent,
            #"AppAttest error="challenge-spent", next="sign-again", challenge="AQEA", "#
                + #"sign="target""#
        ),
        (.keyUnknown, #"AppAttest error="key-unknown", next="enrol", sign="target""#),
    ])
    func `a 401 says what is to be signed`(refusal: Refusal, expected: String) {
        var details = LocalResponse.Details(challenge: "AQEA")
        details.signing = #"sign="target""#
        let fields = fields(LocalResponse(.refused(refusal), details))
        expectEqual(fields["WWW-Authenticate"], expected)
    }

    /// An origin can answer 403 with the gateway's own JSON. What it can't send is the field.
    @Test func `every problem of the gateway says that it is the gateway's, and nothing else does`()
        throws
    {
        for outcome in LocalRowTests.all where outcome.row.blame != .nobody {
            let response = LocalResponse(outcome)
            let next = try document(response)["next"] as? String
            let expected = outcome.reason + (next.map { ";next=\($0)" } ?? "")
            expectEqual(fields(response)["App-Attest-Error"], expected)
        }
        expectEqual(
            fields(LocalResponse(.created, as: "text/plain", [], challenge: "AQEA")).count,
            1
        )
        #expect(fields(LocalResponse(empty: .lastHop)).isEmpty)
    }

    @Test func `an unknown key is sent to enrol, not to sign again`() throws {
        let response = LocalResponse(
            .refused(.keyUnknown),
            LocalResponse.Details(challenge: "AQEA")
        )
        expectEqual(fields(response)["App-Attest-Challenge"], nil)
        #expect(try document(response)["next"] as? String == "enrol")
        #expect(try document(response)["challenge"] == nil)
    }

    @Test(arguments: [(7, "7"), (0, "1"), (-3, "1")])
    func `later says when, and never at once`(seconds: Int, text: String) {
        let details = LocalResponse.Details(waitSeconds: seconds)
        let response = LocalResponse(.refused(.enrolmentThrottled), details)
        expectEqual(fields(response)["Retry-After"], text)
    }

    @Test func `a 405 lists what is allowed`() {
        var details = LocalResponse.Details()
        details.allowed = [.get, .head]
        expectEqual(fields(LocalResponse(.fault(.methodRefused), details))["Allow"], "GET, HEAD")
    }

    @Test func `every answer is for its request alone, and its content is what it says to be`() {
        for outcome in LocalRowTests.all where outcome.row.blame != .nobody {
            let head = text(LocalResponse(outcome))
            #expect(head.contains("\r\nCache-Control: no-store\r\n"))
            #expect(head.contains("\r\nX-Content-Type-Options: nosniff\r\n"))
            #expect(head.hasPrefix("HTTP/1.1 \(outcome.row.status) "))
        }
    }

    @Test func `a gRPC call's answer is a head with the status and the problem as its message`()
        throws
    {
        for outcome in LocalRowTests.all where outcome.row.blame != .nobody {
            let plain = LocalResponse(outcome, LocalResponse.Details(challenge: "abc"))
            var response = plain
            response.answer(.plain)
            let head = text(response)
            #expect(head.hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(head.hasSuffix("\r\n\r\n"))
            let fields = self.fields(response)
            #expect(head.contains("\r\nContent-Type: application/grpc\r\n"))
            #expect(head.contains("\r\nContent-Length: 0\r\n"))
            expectEqual(fields["grpc-status"], "\(outcome.row.grpc.rawValue)")
            #expect(outcome.row.grpc != .ok)
            let message = try #require(fields["grpc-message"]?.removingPercentEncoding)
            expectEqual(Array((message + "\n").utf8), plain.content)
            // What says how to sign is where it is in any answer.
            expectEqual(fields["WWW-Authenticate"], self.fields(plain)["WWW-Authenticate"])
            expectEqual(fields["App-Attest-Challenge"], self.fields(plain)["App-Attest-Challenge"])
        }
    }

    @Test func `a success is no gRPC status`() {
        var response = LocalResponse(.served, as: "text/plain", Array("ok\n".utf8))
        response.answer(.web)
        #expect(text(response).hasSuffix("\r\n\r\nok\n"))
    }

    @Test(arguments: [
        (400, GRPCStatus.invalidArgument), (401, .unauthenticated), (403, .permissionDenied),
        (404, .unimplemented), (408, .deadlineExceeded), (409, .aborted),
        (413, .resourceExhausted), (417, .invalidArgument), (429, .resourceExhausted),
        (431, .resourceExhausted), (501, .unimplemented), (502, .unavailable), (503, .unavailable),
        (504, .deadlineExceeded), (508, .internalError),
    ])
    func `a status of HTTP has its status of gRPC`(status: Int, call: GRPCStatus) {
        expectEqual(GRPCStatus(answering: status), call)
    }

    @Test func `the answer to HEAD speaks of the content and has none`() {
        let response = LocalResponse(.served, as: "text/plain", Array("ok\n".utf8))
        let head = text(response, isHead: true)
        #expect(head.contains("\r\nContent-Length: 3\r\n"))
        #expect(head.hasSuffix("\r\n\r\n"))
        expectEqual(text(response), head + "ok\n")
    }

    @Test func `what a success without content is made of`() {
        let expected = """
            HTTP/1.1 200 OK\r
            Date: Thu, 01 Jan 1970 00:00:00 GMT\r
            Content-Length: 0\r
            Connection: keep-alive\r
            Cache-Control: no-store\r
            \r

            """
        expectEqual(text(LocalResponse(empty: .lastHop), .keepAlive), expected)
    }
}
