import Cryptography
import Encodings
import Expectations
import Rules
import Testing

/// What a gateway of a fleet obeys: what all have agreed on, and what only it was told.
@Suite struct FleetOrdersTests {
    private let rules: RuleSet
    private let note: RolloutNote

    init() throws {
        note = try #require(
            RolloutNote(
                at: UnixTime(seconds: 1_790_000_000),
                by: "uid 1000",
                why: "a \"bad\" build"
            )
        )
        let rules = ["orders", "carts"].enumerated().map { index, id in
            Rule(
                id: id,
                index: index,
                match: .all,
                origin: OriginIndex(0),
                mode: .enforce
            )
        }
        let fallback = Rule(id: "default", index: 2, match: .all, origin: nil, mode: .deny)
        self.rules = try #require(RuleSet(rules, default: fallback))
    }

    private func modes(_ orders: FleetOrders) -> [String] {
        orders.orders(rules).rules(rules).rules.prefix(2).map(\.mode.rawValue)
    }

    private func agreed(_ requests: RolloutRequest...) throws -> RolloutOrders {
        var orders = RolloutOrders()
        for request in requests { _ = try orders.take(request, note: note, rules: rules) }
        return orders
    }

    /// - later: seconds after ``note``.
    private func change(
        _ version: Int64,
        _ rule: String?,
        later: Int64 = 1
    ) throws -> FleetOrders.Change {
        let at = UnixTime(seconds: note.at.seconds + later)
        let note = try #require(RolloutNote(at: at, by: "uid 1000", why: ""))
        let change = RolloutOrders.Change(rule: rule, from: "a", to: "b", note: note)
        return FleetOrders.Change(version: version, change, gateway: "g1")
    }

    @Test func `a brake that was taken alone holds over newer orders about single rules`() throws {
        var orders = FleetOrders(version: 4)
        try expectEqual(orders.pend(.observeAll, note: note, rules: rules)?.to, "observe")
        expectEqual(modes(orders), ["observe", "observe"])
        let next = try agreed(.order(.share(.whole), rule: "orders"))
        try expectEqual(orders.take(version: 5, next, [change(5, "orders")]), [])
        expectEqual(modes(orders), ["observe", "observe"])
        expectEqual(orders.pending.count, 1)
        try expectEqual(orders.take(version: 7, next, [change(6, nil), change(7, nil)]).count, 1)
        expectEqual(modes(orders), ["enforce", "enforce"])
    }

    @Test func `a brake that was taken alone holds where known orders are written back`() throws {
        let back = try #require(RolloutNote(at: note.at, by: RolloutNote.gatewayName, why: ""))
        func written(_ version: Int64) -> FleetOrders.Change {
            let change = RolloutOrders.Change(rule: nil, from: "a", to: "b", note: back)
            return FleetOrders.Change(version: version, change, gateway: "g1")
        }
        let same = try agreed(.order(.observe, rule: "carts"))
        var orders = FleetOrders(version: 4, agreed: same)
        _ = try orders.pend(.observeAll, note: note, rules: rules)
        // The database had lost the fourth, which is the fifth now.
        expectEqual(orders.take(version: 5, same, [written(5)]), [])
        expectEqual(modes(orders), ["observe", "observe"])
        // The sixth, which the seventh brings back, may have been about all rules.
        expectEqual(orders.take(version: 7, same, [written(7)]).count, 1)
        expectEqual(modes(orders), ["enforce", "observe"])
    }

    @Test(arguments: [nil, "orders"], [-1, 0, 1] as [Int64])
    func `a brake that was taken alone is undone by no older order`(
        rule: String?,
        later: Int64
    ) throws {
        var orders = FleetOrders(version: 4)
        let brake: RolloutRequest = rule.map { .order(.observe, rule: $0) } ?? .observeAll
        #expect(try orders.pend(brake, note: note, rules: rules) != nil)
        // The fleet had it before this gateway was given the brake, or in the same second.
        let next = try agreed(.order(.share(.whole), rule: "orders"))
        let ended = try orders.take(version: 5, next, [change(5, rule, later: later)])
        expectEqual(ended.count, later > 0 ? 1 : 0)
        expectEqual(modes(orders)[0], later > 0 ? "enforce" : "observe")
    }

    @Test func `a rule that was stopped alone goes by a newer order about it`() throws {
        var orders = FleetOrders(version: 4)
        #expect(try orders.pend(.order(.observe, rule: "orders"), note: note, rules: rules) != nil)
        expectEqual(modes(orders), ["observe", "enforce"])
        let next = try agreed(.order(.observe, rule: "carts"))
        try expectEqual(orders.take(version: 5, next, [change(5, "carts")]), [])
        expectEqual(modes(orders), ["observe", "observe"])
        try expectEqual(
            orders.take(version: 6, next, [change(6, "orders")]).map(\.rule),
            ["orders"]
        )
        expectEqual(modes(orders), ["enforce", "observe"])
    }

    @Test func `what a file ends holds at once without the database, and is written later`() throws
    {
        let request = RolloutRequest.order(.share(.whole), rule: "orders")
        var orders = FleetOrders(version: 4, agreed: try agreed(request))
        let ended = RolloutRequest.order(.atMost(.whole), rule: "orders")
        try expectEqual(orders.pend(ended, note: note, rules: rules)?.to, "no order")
        #expect(orders.orders(rules).isEmpty)
        orders = try FleetOrders(json: orders.json.span)
        expectEqual(orders.pending.map(\.request), [ended])
        // A newer order about the rule counts.
        let next = try agreed(.order(.observe, rule: "orders"))
        try expectEqual(orders.take(version: 5, next, [change(5, "orders")]).count, 1)
        expectEqual(modes(orders), ["observe", "enforce"])
    }

    @Test func `what may refuse more clients waits for the database`() throws {
        var orders = FleetOrders(version: 4, agreed: try agreed(.observeAll))
        let before = orders
        for request: RolloutRequest in [
            .resumeAll, .file(rule: "orders"), .order(.share(.none), rule: "orders"),
            .order(.off, rule: "orders"),
        ] {
            try expectEqual(orders.pend(request, note: note, rules: rules), nil)
        }
        expectEqual(orders, before)
        #expect(throws: RolloutOrders.Fault.unknownRule) {
            try orders.pend(.order(.observe, rule: "none"), note: note, rules: rules)
        }
        // A brake that the fleet has never heard of can be taken back.
        var alone = FleetOrders(version: 4)
        _ = try alone.pend(.observeAll, note: note, rules: rules)
        #expect(try alone.pend(.resumeAll, note: note, rules: rules) != nil)
        expectEqual(alone, FleetOrders(version: 4))
    }

    @Test func `a gateway that comes to a fleet brings the orders that the fleet lacks`() throws {
        let own = try agreed(
            .order(.share(.none), rule: "orders"),
            .order(.observe, rule: "carts"),
            .observeAll
        )
        var orders = FleetOrders(agreed: own)
        #expect(orders.areOfOneGateway)
        let theirs = try agreed(.order(.off, rule: "carts"))
        try expectEqual(orders.take(version: 1, theirs, [change(1, "carts")]), [])
        expectEqual(orders.pending.map(\.rule), [nil, "orders"])
        expectEqual(orders.orders(rules).entries["carts"]?.order, .off)
        #expect(!orders.areOfOneGateway)
    }

    @Test func `a state that was reached beside another one takes nothing back`() throws {
        let start = FleetOrders(version: 4)
        var here = start
        var there = start
        _ = try here.pend(.observeAll, note: note, rules: rules)
        let next = try agreed(.order(.observe, rule: "orders"))
        _ = try there.take(version: 5, next, [change(5, "orders")])
        here.merge(there, ended: [])
        #expect(here.version == 5 && here.agreed == next && here.pending.count == 1)
        // An older one, which was slow.
        here.merge(start, ended: [])
        #expect(here.version == 5 && here.agreed == next)
        here.merge(there, ended: here.pending)
        expectEqual(here.pending, [])
    }

    @Test func `a state that a failover has lost gives way to another one of its version`() throws {
        let lost = try agreed(.order(.observe, rule: "carts"))
        let next = try agreed(.order(.off, rule: "orders"))
        for version in [1, 4] as [Int64] {
            var orders = FleetOrders(version: version, agreed: lost)
            orders.doubt()
            try expectEqual(orders.take(version: version, next, [change(version, "orders")]), [])
            expectEqual(orders, FleetOrders(version: version, agreed: next))
        }
    }

    @Test func `they are kept as they are`() throws {
        var orders = FleetOrders(version: 12, agreed: try agreed(.order(.off, rule: "carts")))
        _ = try orders.pend(.observeAll, note: note, rules: rules)
        _ = try orders.pend(.order(.observe, rule: "orders"), note: note, rules: rules)
        try expectEqual(FleetOrders(json: orders.json.span), orders)
        for text in ["{}", #"{"version":1,"order":2}"#, #"{"version":2,"order":2,"agreed":"{}"}"#] {
            #expect(throws: JSONError.self) { try FleetOrders(json: Array(text.utf8).span) }
        }
    }
}
