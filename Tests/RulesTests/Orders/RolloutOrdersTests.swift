import Cryptography
import Encodings
import Expectations
import Rules
import Testing

/// What operators order, and what becomes of rules by it.
@Suite struct RolloutOrdersTests {
    private static let now = UnixTime(seconds: 1_790_000_000)

    private static func note(_ why: String = "") throws -> RolloutNote {
        try #require(RolloutNote(at: now, by: "uid 1000", why: why))
    }

    private static func share(_ text: String) throws -> RolloutOrder {
        try #require(RolloutOrder(text: text))
    }

    /// `orders` enforces a quarter, `watched` observes, `open` is off, and the default denies.
    private static func rules() throws -> RuleSet {
        func rule(_ id: String, _ index: Int, _ mode: Mode, _ percent: String = "100%") throws
            -> Rule
        {
            var demands = Rule.Demands(salt: id, mode: mode)
            let share = try #require(Share(percent: percent))
            demands.rollout = Rollout(.fixed(share), by: .address, salt: "pepper")
            demands.counter = .window(8)
            let match = RouteMatch(path: try PathPattern("/\(id)"))
            return Rule(
                id: id,
                index: index,
                match: match,
                origin: OriginIndex(0),
                demands: demands
            )
        }
        let rules = [
            try rule("orders", 0, .enforce, "25%"), try rule("watched", 1, .observe),
            try rule("open", 2, .off),
        ]
        let fallback = Rule(id: "default", index: 3, match: .all, origin: nil, mode: .deny)
        return try #require(RuleSet(rules, default: fallback))
    }

    private static func modes(_ orders: RolloutOrders) throws -> [String] {
        orders.rules(try rules()).rules.map(\.modeText)
    }

    @Test(arguments: [
        (["orders 10%"], true), (["orders 25%"], true), (["orders observe"], true),
        (["orders off"], true), (["all observe"], true), (["orders 26%"], false),
        (["watched 1%"], false), (["watched observe"], true), (["orders file"], true),
        (["all resume"], true),
    ])
    func `an order refuses no more than the files where it says less`(
        orders: [String],
        refusesNoMore: Bool
    ) throws {
        let rules = try Self.rules()
        expectEqual(
            try Self.ordered(orders).refusesNoMore(than: RolloutOrders(), rules, at: Self.now),
            refusesNoMore
        )
    }

    @Test func `what ends an order that refused less refuses more, also later`() throws {
        let rules = try Self.rules()
        func isLess(_ next: [String], than before: [String]) throws -> Bool {
            let (before, next) = (try Self.ordered(before), try Self.ordered(before + next))
            return next.refusesNoMore(than: before, rules, at: Self.now)
        }
        #expect(try !isLess(["orders file"], than: ["orders 10%"]))
        #expect(try !isLess(["orders 25%"], than: ["orders observe"]))
        #expect(try !isLess(["all resume"], than: ["all observe"]))
        #expect(try isLess(["orders file"], than: ["orders 50%"]))
        // An emergency hides it only for now.
        #expect(try !isLess(["orders 26%"], than: ["all observe"]))
        #expect(try isLess(["orders 24%"], than: ["all observe"]))
    }

    @Test func `a ramp refuses more later, and a share of today's size does not`() throws {
        let dates = (Self.now.advanced(bySeconds: -100), Self.now.advanced(bySeconds: 100))
        let (start, end) = (try #require(Share(percent: "0%")), Share.whole)
        let match = RouteMatch(path: try PathPattern("/orders"))
        var demands = Rule.Demands(salt: "orders", mode: .enforce)
        demands.rollout = Rollout(
            .growing(from: dates.0, to: dates.1, start: start, end: end),
            salt: "orders"
        )
        let rule = Rule(
            id: "orders",
            index: 0,
            match: match,
            origin: OriginIndex(0),
            demands: demands
        )
        let fallback = Rule(id: "default", index: 1, match: .all, origin: nil, mode: .deny)
        let rules = try #require(RuleSet([rule], default: fallback))
        func order(_ text: String) throws -> RolloutOrders {
            var orders = RolloutOrders()
            let request = RolloutRequest.order(try Self.share(text), rule: "orders")
            _ = try orders.take(request, note: try Self.note(), rules: rules)
            return orders
        }
        let ramp = RolloutOrders()
        #expect(try order("50%").refusesNoMore(than: ramp, rules, at: Self.now))
        #expect(try !order("51%").refusesNoMore(than: ramp, rules, at: Self.now))
        #expect(try !ramp.refusesNoMore(than: order("100%"), rules, at: Self.now))
    }

    /// Orders as a command has them: `orders 10%`, `all observe`.
    private static func ordered(_ texts: [String]) throws -> RolloutOrders {
        var orders = RolloutOrders()
        for text in texts {
            let words = text.split(separator: " ").map(String.init)
            let request: RolloutRequest =
                switch (words[0], words[1]) {
                case ("all", "observe"): .observeAll
                case ("all", _): .resumeAll
                case (let rule, "file"): .file(rule: rule)
                case (let rule, let to): .order(try share(to), rule: rule)
                }
            _ = try orders.take(request, note: try note(), rules: try rules())
        }
        return orders
    }

    @Test func `an order of a guard is told from an operator's, and ends like one`() throws {
        var orders = RolloutOrders()
        let rules = try Self.rules()
        let note = try #require(
            RolloutNote(at: Self.now, by: RolloutNote.guardName, why: "20 of 90 installs refused")
        )
        let change = try orders.take(.order(.observe, rule: "orders"), note: note, rules: rules)
        expectEqual(change.to, "observe (guard)")
        orders = try RolloutOrders(json: orders.json.span)
        let standing = orders.standing(of: rules.rules[0])
        expectEqual(standing.source, .guarded)
        expectEqual(standing.rule.mode, .observe)
        expectEqual(standing.orderText?.contains("its guard has fallen, it is observe ("), true)
        expectEqual(orders.standing(of: rules.rules[1]).source, .file)
        _ = try orders.take(
            .order(try Self.share("1%"), rule: "orders"),
            note: try Self.note(),
            rules: rules
        )
        expectEqual(orders.standing(of: rules.rules[0]).source, .command)
        _ = try orders.take(.order(.observe, rule: "orders"), note: note, rules: rules)
        _ = try orders.take(.file(rule: "orders"), note: try Self.note(), rules: rules)
        #expect(orders.isEmpty)
    }

    /// `orders` with a ramp from 0 % to 100 % over a thousand seconds from `now` on.
    private static func growing(_ span: Int64 = 1_000) throws -> RuleSet {
        let rules = try Self.rules()
        let ramp = Rollout.Schedule.growing(
            from: now,
            to: now.advanced(bySeconds: span),
            start: .none,
            end: .whole
        )
        let old = rules.rules[0]
        var demands = old.demands
        (demands.mode, demands.rollout) = (.enforce, Rollout(ramp, salt: "orders"))
        let rule = Rule(
            id: old.id,
            index: 0,
            match: old.match,
            origin: old.origin,
            demands: demands
        )
        let others = Array(rules.rules[1...].dropLast())
        return try #require(RuleSet([rule] + others, default: rules.fallback))
    }

    @Test func `a stopped ramp goes on from its share, over two falls and orders between`() throws {
        var orders = RolloutOrders()
        let rules = try Self.growing()
        func note(_ second: Int64, by: String = RolloutNote.guardName) throws -> RolloutNote {
            try #require(
                RolloutNote(at: Self.now.advanced(bySeconds: second), by: by, why: "")
            )
        }
        func share(_ second: Int64) -> Int {
            let rule = orders.standing(of: rules.rules[0]).rule
            return rule.rollout.share(at: Self.now.advanced(bySeconds: second)).millionths
        }
        _ = try orders.take(.order(.observe, rule: "orders"), note: try note(300), rules: rules)
        expectEqual(
            orders.standing(of: rules.rules[0]).rampText?.contains("stands at 30% since"),
            true
        )
        // An order between, and a second fall under it.
        let five = RolloutRequest.order(try Self.share("5%"), rule: "orders")
        _ = try orders.take(five, note: try note(400, by: "uid 0"), rules: rules)
        _ = try orders.take(.order(.observe, rule: "orders"), note: try note(500), rules: rules)
        orders = try RolloutOrders(json: orders.json.span)
        let given = try orders.take(
            .file(rule: "orders"),
            note: try note(5_300, by: "uid 0"),
            rules: rules
        )
        #expect(given.to.hasSuffix(" by key (delayed)"))
        expectEqual(share(5_300), 300_000)
        expectEqual(share(5_700), 700_000)
        expectEqual(share(6_000), 1_000_000)
        // It falls again, at 50 %.
        _ = try orders.take(.order(.observe, rule: "orders"), note: try note(5_500), rules: rules)
        let standing = orders.standing(of: rules.rules[0])
        expectEqual(standing.rampText?.contains("stands at 50% since"), true)
        expectEqual(standing.source, .guarded)
        _ = try orders.take(
            .file(rule: "orders"),
            note: try note(100_000, by: "uid 0"),
            rules: rules
        )
        orders = try RolloutOrders(json: orders.json.span)
        expectEqual(share(100_000), 500_000)
        expectEqual(
            orders.standing(of: rules.rules[0]).orderText?.hasSuffix(
                "; its ramp is 1d 3h 38m 20s late, since its guard had stopped it"
            ),
            true
        )
        // The emergency switch keeps what is known of it.
        _ = try orders.take(.observeAll, note: try note(100_001, by: "uid 0"), rules: rules)
        expectEqual(orders.standing(of: rules.rules[0]).source, .emergency)
        _ = try orders.take(.resumeAll, note: try note(100_002, by: "uid 0"), rules: rules)
        expectEqual(share(100_000), 500_000)
        // A ramp with other dates counts as it is written.
        let other = try Self.growing(2_000)
        expectEqual(orders.standing(of: other.rules[0]).source, .file)
        _ = try orders.take(.observeAll, note: try note(100_003, by: "uid 0"), rules: other)
        _ = try orders.take(.resumeAll, note: try note(100_004, by: "uid 0"), rules: other)
        #expect(orders.isEmpty)
    }

    @Test func `only a ramp of the file that still grows is stopped`() throws {
        let late = try #require(
            RolloutNote(at: Self.now.advanced(bySeconds: 1_000), by: RolloutNote.guardName, why: "")
        )
        let fall = RolloutRequest.order(.observe, rule: "orders")
        for (rules, note) in [(try Self.growing(), late), (try Self.rules(), late)] {
            var orders = RolloutOrders()
            _ = try orders.take(fall, note: note, rules: rules)
            #expect(orders.pauses.isEmpty)
            _ = try orders.take(.file(rule: "orders"), note: try Self.note(), rules: rules)
            #expect(orders.isEmpty)
        }
        // An operator's own order is none of a guard's, and stops nothing.
        var orders = RolloutOrders()
        _ = try orders.take(fall, note: try Self.note(), rules: try Self.growing())
        #expect(orders.pauses.isEmpty)
    }

    @Test func `a clock that was put back, or far ahead, leaves a ramp in its range`() throws {
        let rules = try Self.growing()
        for (second, late) in [(Int64(-900), Int64(0)), (1 << 40, RampPause.delayMax)] {
            var orders = RolloutOrders()
            let fall = try #require(
                RolloutNote(at: Self.now, by: RolloutNote.guardName, why: "")
            )
            _ = try orders.take(.order(.observe, rule: "orders"), note: fall, rules: rules)
            let at = Self.now.advanced(bySeconds: second)
            let note = try #require(RolloutNote(at: at, by: "uid 0", why: ""))
            _ = try orders.take(.file(rule: "orders"), note: note, rules: rules)
            let delay = orders.pauses["orders"]?.delay
            expectEqual(delay, late)
            _ = orders.rules(rules)
        }
    }

    @Test(
        arguments: [
            #"{"id":"a","ramp":"x","delay":-1,"since":"2026-01-01T00:00:00Z"}"#,
            #"{"id":"a","ramp":"x","delay":316224001,"since":"2026-01-01T00:00:00Z"}"#,
            #"{"id":"a","ramp":"x","delay":1,"since":"yesterday"}"#,
            #"{"id":"a","ramp":"x","delay":1}"#,
            #"{"id":"a","ramp":"x","since":"2026-01-01T00:00:00Z"}"#,
        ]
    ) func `a ramp in the file that can't be is no part of a orders`(ramp: String) {
        let text = Array(#"{"version":1,"rules":[],"ramps":[\#(ramp)]}"#.utf8)
        #expect(throws: JSONError.self) { try RolloutOrders(json: text.span) }
    }

    @Test func `an order changes mode and share of its rule, and nothing else`() throws {
        var orders = RolloutOrders()
        let rules = try Self.rules()
        let change = try orders.take(
            .order(try Self.share("10%"), rule: "orders"),
            note: try Self.note("the new build"),
            rules: rules
        )
        expectEqual(change.from, "enforce, 25% by address (file)")
        expectEqual(change.to, "enforce, 10% by address (command)")
        try expectEqual(Self.modes(orders), ["enforce, 10% by address", "observe", "off", "deny"])
        let ordered = orders.rules(rules).rules[0]
        expectEqual(ordered.rollout.salt, "pepper")
        expectEqual(ordered.counter, .window(8))
        _ = try orders.take(
            .order(try Self.share("1%"), rule: "watched"),
            note: try Self.note(),
            rules: rules
        )
        _ = try orders.take(.order(.off, rule: "orders"), note: try Self.note(), rules: rules)
        try expectEqual(Self.modes(orders), ["off", "enforce, 1% by address", "off", "deny"])
        _ = try orders.take(.file(rule: "orders"), note: try Self.note(), rules: rules)
        _ = try orders.take(.file(rule: "watched"), note: try Self.note(), rules: rules)
        #expect(orders.isEmpty)
        #expect(orders.rules(rules) === rules)
    }

    @Test func `a rule that verifies nothing in its file takes no order`() throws {
        var orders = RolloutOrders()
        for (id, fault) in [
            ("open", RolloutOrders.Fault.verifiesNothing), ("default", .verifiesNothing),
            ("nobody", .unknownRule),
        ] {
            #expect(throws: fault) {
                try orders.take(
                    .order(.observe, rule: id),
                    note: try Self.note(),
                    rules: try Self.rules()
                )
            }
        }
        #expect(orders.isEmpty)
    }

    /// `orders` in one mode, and a default that denies.
    private static func file(_ mode: Mode, _ schedule: Rollout.Schedule? = nil) throws -> RuleSet {
        var demands = Rule.Demands(salt: "orders", mode: mode)
        if let schedule { demands.rollout = Rollout(schedule, salt: "orders") }
        let match = RouteMatch(path: try PathPattern("/orders"))
        let rule = Rule(
            id: "orders",
            index: 0,
            match: match,
            origin: OriginIndex(0),
            demands: demands
        )
        let fallback = Rule(id: "default", index: 1, match: .all, origin: nil, mode: .deny)
        return try #require(RuleSet([rule], default: fallback))
    }

    /// The orders after the files, one after the other, with an order for `orders` under the first.
    private static func orders(_ text: String, through files: [RuleSet]) throws -> RolloutOrders {
        var orders = RolloutOrders()
        let request = RolloutRequest.order(try share(text), rule: "orders")
        _ = try orders.take(request, note: try note("build 7"), rules: files[0])
        for (before, after) in zip(files, files.dropFirst()) {
            for request in orders.ended(by: after, after: before) {
                #expect(!request.mayRefuse)
                _ = try orders.take(request, note: try note(), rules: after)
            }
            orders = try RolloutOrders(json: orders.json.span)
        }
        return orders
    }

    @Test(arguments: [Mode.off, .deny])
    func `a file that takes a rule to off or deny ends its order to enforce`(mode: Mode) throws {
        let (watched, silent) = (try Self.file(.observe), try Self.file(mode))
        var orders = try Self.orders("100%", through: [watched])
        expectEqual(orders.rules(watched).rules[0].modeText, "enforce")
        let standing = orders.standing(of: silent.rules[0])
        expectEqual(standing.rule.mode, mode)
        expectEqual(standing.keptText, "100% (2026-09-21T14:13:20Z, uid 1000: build 7)")
        let request = try #require(orders.ended(by: silent, after: watched).first)
        let change = try orders.take(request, note: try Self.note(), rules: silent)
        expectEqual([change.from, change.to], ["order 100%", "no order"])
        #expect(orders.isEmpty)
        expectEqual(orders.rules(watched).rules[0].modeText, "observe")
        #expect(throws: RolloutOrders.Fault.noSuchOrder) {
            try orders.take(request, note: try Self.note(), rules: silent)
        }
    }

    @Test func `what an order keeps a file from enforcing outlives off in the file`() throws {
        let (watched, silent) = (try Self.file(.observe), try Self.file(.off))
        let whole = try Self.file(.enforce)
        func part(_ percent: String) throws -> RuleSet {
            try Self.file(.enforce, .fixed(try #require(Share(percent: percent))))
        }
        let orders = try Self.orders("10%", through: [whole, silent])
        expectEqual(orders.standing(of: silent.rules[0]).keptText?.hasPrefix("at most 10% ("), true)
        let lowered = orders.standing(of: whole.rules[0])
        expectEqual(lowered.text, "enforce, 10% by key (command)")
        expectEqual(lowered.keptText, nil)
        // It enforces for no client for whom the file does not.
        for (file, text) in [
            (watched, "observe (file)"), (try part("5%"), "enforce, 5% by key (file)"),
        ] {
            let standing = orders.standing(of: file.rules[0])
            expectEqual(standing.text, text)
            expectEqual(standing.keptText?.hasPrefix("at most 10% ("), true)
        }
        for text in ["observe", "off", "0%"] {
            let kept = try Self.orders(text, through: [whole, silent, whole])
            expectEqual(kept.standing(of: whole.rules[0]).rule.refusesAnyone, false, "\(text)")
        }
    }

    @Test func `a ramp ends at the share of an order that off has lowered`() throws {
        let (from, to) = (Self.now, Self.now.advanced(bySeconds: 1_000))
        let ramp = try Self.file(.enforce, .growing(from: from, to: to, start: .none, end: .whole))
        let orders = try Self.orders("10%", through: [ramp, try Self.file(.off)])
        let rollout = orders.standing(of: ramp.rules[0]).rule.rollout
        for (second, share) in [(0, 0), (50, 50_000), (100, 100_000), (999, 100_000)] {
            let time = from.advanced(bySeconds: Int64(second))
            expectEqual(rollout.share(at: time).millionths, share, "\(second)")
        }
    }

    @Test func `an order that a file waits for is not ended by it`() throws {
        let (watched, silent) = (try Self.file(.observe), try Self.file(.off))
        let orders = try Self.orders("10%", through: [watched])
        // Given at another gateway of the fleet, before this one has the new file.
        expectEqual(orders.ended(by: silent, after: silent), [])
        expectEqual(orders.ended(by: watched, after: silent), [])
        expectEqual(orders.ended(by: silent, after: nil).count, 1)
    }

    @Test func `the emergency switch stops refusals alone, and orders outlive it`() throws {
        var orders = RolloutOrders()
        let rules = try Self.rules()
        _ = try orders.take(
            .order(try Self.share("50%"), rule: "watched"),
            note: try Self.note(),
            rules: rules
        )
        _ = try orders.take(.observeAll, note: try Self.note("on fire"), rules: rules)
        // What denies goes on to deny, and what is off stays off.
        try expectEqual(Self.modes(orders), ["observe", "observe", "off", "deny"])
        expectEqual(orders.standing(of: rules.rules[0]).source, .emergency)
        // An order is kept for later.
        _ = try orders.take(
            .order(try Self.share("5%"), rule: "orders"),
            note: try Self.note(),
            rules: rules
        )
        try expectEqual(Self.modes(orders)[0], "observe")
        _ = try orders.take(.resumeAll, note: try Self.note(), rules: rules)
        try expectEqual(
            Self.modes(orders),
            ["enforce, 5% by address", "enforce, 50% by address", "off", "deny"]
        )
    }

    @Test func `an order for a rule that is gone can be taken back`() throws {
        var orders = RolloutOrders()
        let rules = try Self.rules()
        _ = try orders.take(.order(.observe, rule: "orders"), note: try Self.note(), rules: rules)
        let fallback = Rule(id: "default", index: 0, match: .all, origin: nil, mode: .deny)
        let fewer = try #require(RuleSet([], default: fallback))
        expectEqual(orders.rules(fewer).rules.map(\.modeText), ["deny"])
        _ = try orders.take(.file(rule: "orders"), note: try Self.note(), rules: fewer)
        #expect(orders.isEmpty)
    }

    @Test func `there are no more orders than the limit`() throws {
        var orders = RolloutOrders()
        var rules: [Rule] = []
        for index in 0...RolloutOrders.entriesMax {
            let match = RouteMatch(path: try PathPattern("/\(index)"))
            let origin = OriginIndex(0)
            rules.append(
                Rule(id: "r\(index)", index: index, match: match, origin: origin, mode: .enforce)
            )
        }
        let fallback = Rule(
            id: "default",
            index: rules.count,
            match: .all,
            origin: nil,
            mode: .deny
        )
        let set = try #require(RuleSet(rules, default: fallback))
        for rule in rules.dropLast() {
            _ = try orders.take(.order(.observe, rule: rule.id), note: try Self.note(), rules: set)
        }
        let last = "r\(RolloutOrders.entriesMax)"
        #expect(throws: RolloutOrders.Fault.full) {
            try orders.take(.order(.observe, rule: last), note: try Self.note(), rules: set)
        }
        _ = try orders.take(.order(.off, rule: "r0"), note: try Self.note(), rules: set)
        #expect(orders.json.count < 1 << 20)
    }

    @Test func `a orders is read as it was written`() throws {
        var orders = RolloutOrders()
        let rules = try Self.rules()
        _ = try orders.take(
            .order(try Self.share("0.5%"), rule: "orders"),
            note: try Self.note(),
            rules: rules
        )
        _ = try orders.take(
            .order(.off, rule: "watched"),
            note: try Self.note("\"quoted\" ä"),
            rules: rules
        )
        _ = try orders.take(.observeAll, note: try Self.note("on fire"), rules: rules)
        let json = orders.json
        try expectEqual(RolloutOrders(json: json.span), orders)
        try expectEqual(RolloutOrders(json: RolloutOrders().json.span), RolloutOrders())
    }

    @Test(arguments: [
        "", "{}", "{\"version\": 2, \"rules\": []}", "{\"version\": 1, \"rules\": [] } x",
        "{\"version\": 1, \"rules\": [{\"id\": \"a\", \"to\": \"10\", \"at\": "
            + "\"2026-11-22T10:00:00Z\", \"by\": \"uid 0\"}]}",
        "{\"version\": 1, \"rules\": [{\"id\": \"a\", \"to\": \"10%\", \"at\": \"soon\", "
            + "\"by\": \"uid 0\"}]}",
        "{\"version\": 1, \"rules\": [{\"id\": \"a\", \"to\": \"10%\"}]}",
        "{\"version\": 1, \"orders\": []}", "{\"version\": 1, \"emergency\": true}",
    ])
    func `a orders that was not written by the gateway is refused`(_ text: String) {
        #expect(throws: JSONError.self) { try RolloutOrders(json: Array(text.utf8).span) }
        // Nor any part of a good one.
        let whole = Array("{\"version\": 1, \"rules\": []}".utf8)
        for end in whole.indices {
            #expect(throws: JSONError.self) { try RolloutOrders(json: Array(whole[..<end]).span) }
        }
    }

    @Test func `a reason is one line that a log can hold`() {
        expectEqual(RolloutNote(at: Self.now, by: "uid 0", why: "two\nlines"), nil)
        expectEqual(RolloutNote(at: Self.now, by: "uid 0", why: "escape \u{1B}[2J"), nil)
        expectEqual(RolloutNote(at: Self.now, by: "uid 0", why: "turned \u{202E}round"), nil)
        let long = String(repeating: "a", count: RolloutNote.whyMax + 1)
        expectEqual(RolloutNote(at: Self.now, by: "uid 0", why: long), nil)
        #expect(RolloutNote(at: Self.now, by: "uid 0", why: String(long.dropFirst())) != nil)
    }

    @Test(arguments: [
        ("{\"rule\": \"orders\", \"to\": \"10%\", \"why\": \"x\"}", true),
        ("{\"rule\": \"orders\", \"to\": \"file\"}", true), ("{\"all\": \"observe\"}", true),
        ("{\"all\": \"resume\", \"why\": \"\"}", true), ("{\"all\": \"off\"}", false),
        ("{\"all\": \"observe\", \"rule\": \"orders\"}", false), ("{\"rule\": \"orders\"}", false),
        ("{\"rule\": \"orders\", \"to\": \"10\"}", false),
        ("{\"rule\": \"orders\", \"to\": \"deny\"}", false), ("{\"to\": \"10%\"}", false),
        ("{\"rule\": \"a\", \"to\": \"off\", \"why\": \"a\\nb\"}", false),
        ("{\"rule\": \"a\", \"rule\": \"b\", \"to\": \"off\"}", false),
        ("{\"rule\": \"a\", \"to\": \"off\", \"by\": \"somebody else\"}", false), ("[]", false),
    ])
    func `a call says one thing`(_ text: String, isGood: Bool) throws {
        let call = try? RolloutRequest.Call(Array(text.utf8).span)
        expectEqual((call != nil), isGood)
        guard let call else { return }
        try expectEqual(RolloutRequest.Call(call.json.span), call)
    }
}

extension Rule {
    /// Whether it refuses a client at all.
    fileprivate var refusesAnyone: Bool {
        mode == .enforce && rollout.schedule != .fixed(.none)
    }
}
