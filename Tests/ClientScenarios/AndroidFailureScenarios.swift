import Expectations
import Foundation
import LoopbackKit
import Testing

// Keystores that fail, keys that are lost, and records that can't be written.
extension ClientScenarios.Android {
    @Test func `a phone that fails says so, and one that lost its key enrols again`() throws {
        let stand = try Stand()
        defer { stand.end() }
        try stand.phone("broken")
        try stand.start("broken")
        try expectEqual(stand.get(), "401 held")
        try stand.app.tell("later 10")
        try expectEqual(stand.get(), "401 unsupported")
        let requests = stand.gateway.requests("/v1/orders")
        expectEqual(requests.map { $0.head.value("app-attest-unsupported") }, [nil, "1"])
        #expect(!requests.contains { $0.head.has("app-attest-assertion") })
        try stand.phone("")
        try stand.app.tell("later 20")
        try expectEqual(stand.get(), "200 proven")
        try stand.app.tell("lose")
        try expectEqual(stand.get(), "200 proven")
        expectEqual(stand.gateway.requests("keys").count, 2)
        try expectEqual(stand.app.tell("keys"), "1")
        try stand.start("no/folder")
        try expectEqual(stand.get(), "401 record-unwritable")
    }

    @Test func `a phone that fails says so while it tries again, too`() throws {
        let stand = try Stand()
        defer { stand.end() }
        try stand.phone("broken")
        try stand.start()
        try expectEqual(stand.get(), "401 held")
        try stand.app.tell("later 10")
        try expectEqual(stand.get(), "401 unsupported")
        // One of them tries, for longer than the other one waits.
        try stand.start("record", "hasty")
        try stand.phone("broken slow")
        try stand.app.tell("later 20")
        try expectEqual(stand.app.tell("crowd 2 /v1/orders"), "401 unsupported x2")
    }

    @Test func `a key with which the keystore signs nothing is replaced, once in a day`() throws {
        let stand = try Stand()
        defer { stand.end() }
        try stand.start()
        try expectEqual(stand.get(), "200 proven")
        try stand.app.tell("spoil")
        // Two tries each.
        for _ in 0..<3 { try expectEqual(stand.get(), "401 key-failed") }
        try expectEqual(stand.get(), "200 proven")
        expectEqual(stand.gateway.requests("keys").count, 2)
        try stand.app.tell("spoil")
        for _ in 0..<5 { try expectEqual(stand.get(), "401 key-failed") }
        #expect(stand.gateway.requests("keys").isEmpty)
        try stand.app.tell("later 90000")
        try expectEqual(stand.get(), "401 key-failed")
        try expectEqual(stand.get(), "200 proven")
    }

    @Test func `a keystore that has no key now is no broken one`() throws {
        let stand = try Stand()
        defer { stand.end() }
        try stand.start()
        try stand.app.tell("throw transient")
        for _ in 0..<4 {
            try expectEqual(stand.get(), "401 held")
            try stand.app.tell("later 200")
        }
        #expect(
            stand.gateway.requests("/v1/orders").allSatisfy {
                !$0.head.has("app-attest-unsupported")
            }
        )
        try stand.app.tell("throw nothing")
        try expectEqual(stand.get(), "200 proven")
        // Nor is a key lost with which it signs nothing for a while.
        try stand.app.tell("throw transient")
        for _ in 0..<4 { try expectEqual(stand.get(), "401 key-failed") }
        try stand.app.tell("throw nothing")
        try expectEqual(stand.get(), "200 proven")
        expectEqual(stand.gateway.requests("keys").count, 1)
    }

    @Test func `two processes of an app give no number twice, nor does one that is killed`() throws
    {
        let stand = try Stand()
        defer { stand.end() }
        let keys = stand.folder.appending(path: "keys")
        try FileManager.default.createDirectory(at: keys, withIntermediateDirectories: false)
        let record = stand.folder.appending(path: "record").path
        // Eighty requests wait for one enrolment, and one of the processes may be started late.
        let words = "start http://\(stand.gateway.address) \(AndroidApp.package) \(record) patient"
        var apps = try (0..<2).map { _ in
            try AndroidApp(authority: stand.gateway.makers, keys: keys)
        }
        defer { for app in apps { app.end() } }
        for app in apps { try app.tell(words) }
        let crowd = "crowd 40 /v1/orders"
        for app in apps { try app.ask(crowd) }
        for app in apps { try expectEqual(app.answer(to: crowd), "200 proven x40") }
        expectEqual(stand.gateway.requests("keys").count, 1)
        expectEqual(stand.gateway.counters, Array(1...80))
        // While one lives, the other one counts on where it was. After both have ended, a number
        // that may have been given is left out: 128 were reserved.
        for (ended, next) in [([0], 81), ([0, 1], 129)] {
            for place in ended { apps[place].end() }
            apps[0] = try AndroidApp(authority: stand.gateway.makers, keys: keys)
            try apps[0].tell(words)
            try expectEqual(apps[0].tell("send GET /v1/orders -"), "200 proven")
            expectEqual(stand.gateway.counters.last, UInt32(next))
        }
        expectEqual(stand.gateway.requests("keys").count, 0)
    }

    @Test func `a thread that is interrupted takes nothing from the others`() throws {
        let stand = try Stand()
        defer { stand.end() }
        try stand.start()
        try stand.app.tell("interrupt 60 /v1/orders")
        try expectEqual(stand.app.tell("crowd 8 /v1/orders"), "200 proven x8")
    }

    @Test func `a key that many requests find lost is lost once`() throws {
        let stand = try Stand()
        defer { stand.end() }
        let lost = AndroidGateway.Refusal(reason: "key-unknown", next: "enrol")
        try stand.start()
        // The first one of a day is replaced at once.
        stand.gateway.refuse("/v1/orders", lost)
        try expectEqual(stand.get(), "200 proven")
        try stand.app.tell("log")
        stand.gateway.gather("/v1/orders", 8)
        stand.gateway.refuse("/v1/orders", lost, times: 8)
        try stand.app.tell("crowd 8 /v1/orders")
        let log = try stand.app.tell("log")
        expectEqual(log.components(separatedBy: "enrolment held for").count, 2)
        try stand.app.tell("later 200")
        try expectEqual(stand.get(), "200 proven")
        expectEqual(stand.gateway.requests("keys").count, 3)
    }

    @Test func `a record that can't be written ends an enrolment whose key is lost`() throws {
        let stand = try Stand()
        defer { stand.end() }
        stand.gateway.refuse("keys", .init(status: 503, reason: "lost"))
        try stand.start()
        try expectEqual(stand.get(), "401 held")
        // Where the next record would be written.
        let next = stand.folder.appending(path: "record.new")
        try FileManager.default.createDirectory(at: next, withIntermediateDirectories: false)
        try stand.app.tell("later 10")
        stand.gateway.refuse("keys", .init(reason: "nonce-mismatch", next: "enrol"))
        try expectEqual(stand.get(), "401 record-unwritable")
        expectEqual(stand.gateway.requests("keys").count, 2)
        try FileManager.default.removeItem(at: next)
        try expectEqual(stand.get(), "200 proven")
    }

    @Test(arguments: ["counter-replayed", "challenge-spent", "session-replayed"])
    func `a copied order is not signed again, unless it may run again`(reason: String) throws {
        let stand = try Stand()
        defer { stand.end() }
        let copy = AndroidGateway.Refusal(reason: reason, next: "sign-again")
        let isInSession = reason == "session-replayed"
        stand.gateway.rule(.init(takesSessions: isInSession))
        try stand.start()
        try stand.app.tell(isInSession ? "plan session" : "plan")
        let proof = isInSession ? "in-session" : "proven"
        for (order, answer, sent) in [
            ("send POST /v1/orders lamp", "401 \(proof) may-have-run", 1),
            ("send POST /v1/orders lamp Idempotency-Key:8e03978e", "200 \(proof)", 2),
            ("send POST /v1/orders lamp Idempotency-Key:", "401 \(proof) may-have-run", 1),
            ("send PUT /v1/orders lamp", "200 \(proof)", 2),
            ("send GET /v1/orders -", "200 \(proof)", 2),
        ] {
            stand.gateway.refuse("/v1/orders", copy)
            try expectEqual(stand.app.tell(order), answer, "\(order)")
            expectEqual(stand.gateway.requests("/v1/orders").count, sent, "\(order)")
        }
    }

    @Test(arguments: ["state", "null", "provider"])
    func `what a keystore throws never reaches the app`(kind: String) throws {
        let stand = try Stand()
        defer { stand.end() }
        try stand.start()
        try stand.app.tell("throw \(kind)")
        try expectEqual(stand.get(), "401 held")
        try stand.app.tell("throw nothing")
        try stand.app.tell("later 10")
        try expectEqual(stand.get(), "200 proven")
        try stand.app.tell("throw \(kind)")
        try expectEqual(stand.get(), "401 key-failed")
        try stand.app.tell("throw nothing")
        try expectEqual(stand.get(), "200 proven")
        expectEqual(stand.gateway.requests("keys").count, 1)
    }

    @Test func `a reset keeps the last key of a day, and to sign out costs none`() throws {
        let stand = try Stand()
        defer { stand.end() }
        try stand.start()
        for isForgotten in ["true", "true", "false", "false"] {
            try expectEqual(stand.get(), "200 proven")
            try expectEqual(stand.app.tell("sign-out"), "ok")
            try expectEqual(stand.get(), "200 proven")
            try expectEqual(stand.app.tell("reset"), isForgotten)
        }
        try expectEqual(stand.get(), "200 proven")
        expectEqual(stand.gateway.requests("keys").count, 3)
        try stand.app.tell("later 90000")
        try expectEqual(stand.app.tell("reset"), "true")
        try expectEqual(stand.get(), "200 proven")
    }

    @Test func `a Retry-After of something before the gateway is kept`() throws {
        let stand = try Stand()
        defer { stand.end() }
        let busy = AndroidGateway.Refusal(
            status: 503,
            reason: "cdn",
            next: nil,
            fields: "Retry-After: 60\r\n"
        )
        try stand.start()
        stand.gateway.refuse("challenges", busy)
        try expectEqual(stand.get(), "401 held")
        try stand.app.tell("later 30")
        try expectEqual(stand.get(), "401 held")
        expectEqual(stand.gateway.requests("challenges").count, 1)
        try stand.app.tell("later 50")
        try expectEqual(stand.get(), "200 proven")
    }

    @Test func `a signed field has printable ASCII, or the request is not signed`() throws {
        let stand = try Stand()
        defer { stand.end() }
        stand.gateway.rule(.init(headers: ["idempotency-key"]))
        try stand.start()
        let order = "send POST /v1/orders lamp Idempotency-Key:"
        try expectEqual(stand.app.tell(order + "8e03978e"), "200 proven")
        expectEqual(stand.gateway.requests("/v1/orders").count, 3)
        try expectEqual(stand.app.tell(order + "k~"), "unfit")
        // A rule that observes would have served it.
        let sent = try #require(stand.gateway.requests("/v1/orders").first)
        #expect(!sent.head.has("app-attest-assertion"))
        // Another field may have what it likes.
        try expectEqual(stand.app.tell(order + "8e03978e"), "200 proven")
    }
}
