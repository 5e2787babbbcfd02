import Expectations
import KeyStore
import OutboundCalls
import Rules
import Testing
import Verification

@testable import Parties

/// DeviceCheck's answers, with the statuses and texts that Apple documents and those that were seen
/// (Sources/docs/decisions.md).
@Suite struct DeviceReplyTests {
    private static func answer(_ status: Int, _ body: String = "") -> CallReply {
        .answered(status: status, retryAfter: nil, body: Array(body.utf8))
    }

    private static let set = DeviceBits(bit0: true, bit1: false)

    @Test(arguments: [
        (
            #"{"bit0":true,"bit1":false,"last_update_time":"2026-11"}"#,
            DeviceReply.bits(set, month: "2026-11")
        ),
        (#"{"bit1":false,"bit0":true}"#, .bits(set, month: nil)),
        (#" {"bit0": true, "other": [1], "bit1": false} "#, .bits(set, month: nil)),
        ("Bit State Not Found", .neverSet),
        ("Failed to find bit state", .neverSet),
        ("failed to find bit state\n", .neverSet),
        ("", .failed(.unreadable)),
        ("OK", .failed(.unreadable)),
        ("{}", .failed(.unreadable)),
        (#"{"bit0":true}"#, .failed(.unreadable)),
        (#"{"bit0":1,"bit1":0}"#, .failed(.unreadable)),
        (#"{"bit0":"true","bit1":"false"}"#, .failed(.unreadable)),
        (#"{"bit0":true,"bit0":false,"bit1":false}"#, .failed(.unreadable)),
        (#"{"bit0":true,"bit1":false,"last_update_time":"11/2026"}"#, .failed(.unreadable)),
        (#"{"bit0":true,"bit1":false}}"#, .failed(.unreadable)),
    ])
    func `a query is answered with bits, or with a text for never set`(
        body: String,
        expected: DeviceReply
    ) {
        expectEqual(DeviceReply(Self.answer(200, body), to: .query), expected)
    }

    @Test(arguments: [DeviceQuestion.update(set), .validate])
    func `an update and a validation are done with 200, whatever the body is`(
        question: DeviceQuestion
    ) {
        for body in ["", "OK", "{}"] {
            expectEqual(DeviceReply(Self.answer(200, body), to: question), .done)
        }
    }

    @Test(arguments: [
        (
            answer(400, "Missing or incorrectly formatted device token payload"),
            DeviceReply.tokenRefused
        ),
        (answer(400, "Bad Device Token"), .tokenRefused),
        (answer(400, "Missing or incorrectly formatted bits"), .failed(.callRefused)),
        (answer(400, "Missing or incorrectly formatted time stamp"), .failed(.callRefused)),
        (
            answer(400, "Missing or badly formatted authorization token"),
            .failed(.callRefused)
        ),
        (answer(400), .tokenRefused),
        (answer(413), .tokenRefused),
        (answer(401, "Unable to verify authorization token"), .failed(.credentialRefused)),
        (answer(403), .failed(.credentialRefused)),
        (answer(405), .failed(.unreadable)),
        (answer(302), .failed(.unreadable)),
        (answer(204), .failed(.unreadable)),
        (.answered(status: 429, retryAfter: 7, body: []), .failed(.tooMany(retryAfter: 7))),
        (answer(500), .failed(.broken())),
        (.answered(status: 503, retryAfter: 2, body: []), .failed(.broken(retryAfter: 2))),
        (.unsent(.breakerOpen), .failed(.unanswered(.breakerOpen))),
        (.failed(.timeout), .failed(.unanswered(.timeout))),
    ])
    func `every other status has its meaning, for each call`(
        reply: CallReply,
        expected: DeviceReply
    ) {
        for question in [DeviceQuestion.query, .update(Self.set), .validate] {
            expectEqual(DeviceReply(reply, to: question), expected)
        }
    }

    @Test func `what is wrong with the call itself is not asked again`() {
        let final: [PartyFault] = [
            .callRefused, .credentialRefused, .unanswered(.noCredential),
            .unanswered(.noHost), .unanswered(.stopping),
        ]
        for fault in final { #expect(!fault.mayPass, "\(fault)") }
        let passing: [PartyFault] = [
            .tooMany(), .broken(), .unreadable,
            .unanswered(.breakerOpen), .unanswered(.timeout), .unanswered(.queueFull),
        ]
        for fault in passing { #expect(fault.mayPass, "\(fault)") }
    }

    // MARK: Bodies

    @Test(arguments: [
        (
            DeviceQuestion.query, "/v1/query_two_bits",
            #"{"device_token":"+/8=","transaction_id":"t-1","timestamp":1763814000123}"#
        ),
        (
            .validate, "/v1/validate_device_token",
            #"{"device_token":"+/8=","transaction_id":"t-1","timestamp":1763814000123}"#
        ),
        (
            .update(set), "/v1/update_two_bits",
            """
            {"device_token":"+/8=","transaction_id":"t-1","timestamp":1763814000123,"bit0":true,\
            "bit1":false}
            """
        ),
    ])
    func `a call carries token, transaction and milliseconds, and an update both bits`(
        question: DeviceQuestion,
        path: String,
        body: String
    ) throws {
        // The other alphabet, without padding: Apple gets the standard one, with padding.
        let token = try #require(Self.token("-_8"))
        let device = NamedDevice(token, .development, teamID: "ABCDE12345")
        let call = device.call(
            question,
            transaction: "t-1",
            at: 1_763_814_000_123,
            timeout: .seconds(2)
        )
        expectEqual(String(decoding: call.body, as: UTF8.self), body)
        #expect(call.service.path == path && call.service.contentType == "application/json")
        #expect(call.environment == .development && call.teamID == "ABCDE12345")
        expectEqual(call.timeout, .seconds(2))
    }

    // MARK: Tokens and changes

    private static func token(_ text: String) -> DeviceToken? {
        DeviceToken(Array(text.utf8).span)
    }

    private static func change(_ text: String) -> DeviceChange? {
        DeviceChange(field: Array(text.utf8).span)
    }

    @Test func `spellings of one token have one name`() throws {
        let tokens = ["-_8", "+/8=", "-_8=", "+/8"].map(Self.token)
        #expect(Set(tokens).count == 1 && !tokens.contains(nil))
    }

    @Test(arguments: ["", "=", "a", "+/8= ", "+/8=\n", "+/9=", "{}"])
    func `what is no base64 is no token`(text: String) {
        expectEqual(Self.token(text), nil)
    }

    @Test func `a token has a longest length`() {
        let longest = String(repeating: "A", count: DeviceToken.textMax)
        #expect(Self.token(longest) != nil)
        expectEqual(Self.token(longest + "AAAA"), nil)
    }

    @Test(
        arguments: [
            ("1,-", true, nil), ("-,0", nil, false), ("1, 0", true, false), (" - ,\t1 ", nil, true),
            ("-,-", nil, nil),
        ] as [(String, Bool?, Bool?)]
    )
    func `an origin names the bits that change`(text: String, bit0: Bool?, bit1: Bool?) {
        let change = Self.change(text)
        expectEqual(change, DeviceChange(bit0: bit0, bit1: bit1))
        expectEqual(change?.isEmpty, bit0 == nil && bit1 == nil)
    }

    @Test(arguments: ["", "1", "1,", ",1", "1,1,1", "true,false", "2,0", "10", "1;0", "1,-,"])
    func `any other value changes nothing`(text: String) {
        expectEqual(Self.change(text), nil)
    }

    /// An application that mirrors the request's fields would undo what another response changed.
    @Test func `what an origin is told of the bits is no change of them`() {
        for bits in DeviceBits.all { expectEqual(Self.change(bits.fieldText), nil) }
    }

    @Test func `a bit that is not named stays`() {
        for bits in DeviceBits.all {
            let change = DeviceChange(bit0: true, bit1: nil)
            expectEqual(change.whole, nil)
            expectEqual(change.applied(to: bits), DeviceBits(bit0: true, bit1: bits.bit1))
        }
        let both = DeviceChange(bit0: false, bit1: true)
        expectEqual(both.whole, DeviceBits(bit0: false, bit1: true))
    }
}
