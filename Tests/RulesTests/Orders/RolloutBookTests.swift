import Cryptography
import JSONText
import Rules
import Testing

/// What operators order, and what becomes of rules by it.
@Suite struct RolloutBookTests {
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
            var demands = Rule.Demands(salt: id)
            let share = try #require(Share(percent: percent))
            demands.rollout = Rollout(.fixed(share), by: .address, salt: "pepper")
            demands.counter = .window(8)
            let match = RouteMatch(path: try PathPattern("/\(id)"))
            return Rule(
                id: id,
                index: index,
                match: match,
                origin: OriginIndex(0),
                mode: mode,
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

    private static func modes(_ book: RolloutBook) throws -> [String] {
        book.rules(try rules()).rules.map(\.modeText)
    }

    @Test func `an order of a guard is told from an operator's, and ends like one`() throws {
        var book = RolloutBook()
        let rules = try Self.rules()
        let note = try #require(
            RolloutNote(at: Self.now, by: RolloutNote.guardName, why: "20 of 90 installs refused")
        )
        let change = try book.take(.order(.observe, rule: "orders"), note, rules)
        #expect(change.to == "observe (guard)")
        book = try RolloutBook(json: book.json.span)
        let standing = book.standing(of: rules.rules[0])
        #expect(standing.source == .guarded)
        #expect(standing.rule.mode == .observe)
        #expect(standing.orderText?.contains("its guard has fallen, it is observe (") == true)
        #expect(book.standing(of: rules.rules[1]).source == .file)
        _ = try book.take(.order(try Self.share("1%"), rule: "orders"), try Self.note(), rules)
        #expect(book.standing(of: rules.rules[0]).source == .command)
        _ = try book.take(.order(.observe, rule: "orders"), note, rules)
        _ = try book.take(.file(rule: "orders"), try Self.note(), rules)
        #expect(book.isEmpty)
    }

    @Test func `an order changes mode and share of its rule, and nothing else`() throws {
        var book = RolloutBook()
        let rules = try Self.rules()
        let change = try book.take(
            .order(try Self.share("10%"), rule: "orders"),
            try Self.note("the new build"),
            rules
        )
        #expect(change.from == "enforce, 25% by address (file)")
        #expect(change.to == "enforce, 10% by address (command)")
        #expect(try Self.modes(book) == ["enforce, 10% by address", "observe", "off", "deny"])
        let ordered = book.rules(rules).rules[0]
        #expect(ordered.rollout.salt == "pepper")
        #expect(ordered.counter == .window(8))
        _ = try book.take(.order(try Self.share("1%"), rule: "watched"), try Self.note(), rules)
        _ = try book.take(.order(.off, rule: "orders"), try Self.note(), rules)
        #expect(try Self.modes(book) == ["off", "enforce, 1% by address", "off", "deny"])
        _ = try book.take(.file(rule: "orders"), try Self.note(), rules)
        _ = try book.take(.file(rule: "watched"), try Self.note(), rules)
        #expect(book.isEmpty)
        #expect(book.rules(rules) === rules)
    }

    @Test func `a rule that verifies nothing in its file takes no order`() throws {
        var book = RolloutBook()
        for (id, fault) in [
            ("open", RolloutBook.Fault.verifiesNothing), ("default", .verifiesNothing),
            ("nobody", .unknownRule),
        ] {
            #expect(throws: fault) {
                try book.take(.order(.observe, rule: id), try Self.note(), try Self.rules())
            }
        }
        #expect(book.isEmpty)
    }

    @Test func `the emergency switch stops refusals alone, and orders outlive it`() throws {
        var book = RolloutBook()
        let rules = try Self.rules()
        _ = try book.take(.order(try Self.share("50%"), rule: "watched"), try Self.note(), rules)
        _ = try book.take(.observeAll, try Self.note("on fire"), rules)
        // What denies goes on to deny, and what is off stays off.
        #expect(try Self.modes(book) == ["observe", "observe", "off", "deny"])
        #expect(book.standing(of: rules.rules[0]).source == .emergency)
        // An order is kept for later.
        _ = try book.take(.order(try Self.share("5%"), rule: "orders"), try Self.note(), rules)
        #expect(try Self.modes(book)[0] == "observe")
        _ = try book.take(.resumeAll, try Self.note(), rules)
        #expect(
            try Self.modes(book)
                == ["enforce, 5% by address", "enforce, 50% by address", "off", "deny"]
        )
    }

    @Test func `an order for a rule that is gone can be taken back`() throws {
        var book = RolloutBook()
        let rules = try Self.rules()
        _ = try book.take(.order(.observe, rule: "orders"), try Self.note(), rules)
        let fallback = Rule(id: "default", index: 0, match: .all, origin: nil, mode: .deny)
        let fewer = try #require(RuleSet([], default: fallback))
        #expect(book.rules(fewer).rules.map(\.modeText) == ["deny"])
        _ = try book.take(.file(rule: "orders"), try Self.note(), fewer)
        #expect(book.isEmpty)
    }

    @Test func `there are no more orders than the limit`() throws {
        var book = RolloutBook()
        var rules: [Rule] = []
        for index in 0...RolloutBook.entriesMax {
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
            _ = try book.take(.order(.observe, rule: rule.id), try Self.note(), set)
        }
        let last = "r\(RolloutBook.entriesMax)"
        #expect(throws: RolloutBook.Fault.full) {
            try book.take(.order(.observe, rule: last), try Self.note(), set)
        }
        _ = try book.take(.order(.off, rule: "r0"), try Self.note(), set)
        #expect(book.json.count < 1 << 20)
    }

    @Test func `a book is read as it was written`() throws {
        var book = RolloutBook()
        let rules = try Self.rules()
        _ = try book.take(.order(try Self.share("0.5%"), rule: "orders"), try Self.note(), rules)
        _ = try book.take(.order(.off, rule: "watched"), try Self.note("\"quoted\" ä"), rules)
        _ = try book.take(.observeAll, try Self.note("on fire"), rules)
        let json = book.json
        #expect(try RolloutBook(json: json.span) == book)
        #expect(try RolloutBook(json: RolloutBook().json.span) == RolloutBook())
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
    func `a book that was not written by the gateway is refused`(_ text: String) {
        #expect(throws: JSONError.self) { try RolloutBook(json: Array(text.utf8).span) }
        // Nor any part of a good one.
        let whole = Array("{\"version\": 1, \"rules\": []}".utf8)
        for end in whole.indices {
            #expect(throws: JSONError.self) { try RolloutBook(json: Array(whole[..<end]).span) }
        }
    }

    @Test func `a reason is one line that a log can hold`() {
        #expect(RolloutNote(at: Self.now, by: "uid 0", why: "two\nlines") == nil)
        #expect(RolloutNote(at: Self.now, by: "uid 0", why: "escape \u{1B}[2J") == nil)
        #expect(RolloutNote(at: Self.now, by: "uid 0", why: "turned \u{202E}round") == nil)
        let long = String(repeating: "a", count: RolloutNote.whyMax + 1)
        #expect(RolloutNote(at: Self.now, by: "uid 0", why: long) == nil)
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
        let call = try? RolloutWish.Call(Array(text.utf8).span)
        #expect((call != nil) == isGood)
        guard let call else { return }
        #expect(try RolloutWish.Call(call.json.span) == call)
    }
}
