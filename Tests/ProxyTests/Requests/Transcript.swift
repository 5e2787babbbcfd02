import Expectations
import HTTPWire
import Rules
import Testing
import Verification

@testable import Proxy

/// One request, as a table: what happens, and what the machine says to it.
struct Transcript: CustomTestStringConvertible, Sendable {
    typealias Row = (event: Event, reaction: Reaction)

    let name: String
    let facts: RequestFacts
    let rule: Rule
    let rows: [Row]
    /// What an origin was given at the end.
    let delivery: Delivery

    var testDescription: String { name }

    init(
        _ name: String,
        _ facts: RequestFacts,
        _ rule: Rule = .off,
        ends delivery: Delivery,
        @Rows _ rows: () -> [Row]
    ) {
        self.name = name
        self.facts = facts
        self.rule = rule
        self.rows = rows()
        self.delivery = delivery
    }

    /// A way from one state to another.
    struct Step: Hashable, CustomStringConvertible {
        let from: String
        let to: String
        var description: String { "\(from) → \(to)" }
    }

    /// Plays the events; compares what the machine says where `expects` is set.
    ///
    /// - Returns: the ways that were taken.
    @discardableResult
    func play(expects: Bool) -> Set<Step> {
        var flow = Flow(facts, fallback: .off)
        var steps: Set<Step> = []
        var state = flow.stateName
        for (index, row) in rows.enumerated() {
            let reaction = row.event.happen(to: &flow, rule)
            if expects {
                expectEqual(reaction, row.reaction, "\(name): row \(index), \(row.event)")
            }
            let next = flow.stateName
            if next != state { steps.insert(Step(from: state, to: next)) }
            state = next
        }
        if expects {
            expectEqual(state, "over", "\(name) stays \(state)")
            expectEqual(flow.delivery, delivery, "\(name)")
        }
        return steps
    }
}

extension Transcript {
    /// Plays some events; then the client goes. Nothing may follow but the end.
    func `break`(behind count: Int) {
        var flow = Flow(facts, fallback: .off)
        for row in rows.prefix(count) { _ = row.event.happen(to: &flow, rule) }
        let wasOver = flow.isOver
        let action = flow.clientClosed()
        let isOver = flow.isOver
        #expect(isOver)
        if case .end = action { #expect(!wasOver) } else { #expect(wasOver && action == .none) }
        expectEqual(flow.clientClosed(), .none)
        expectEqual(flow.contentReady(), .none)
        expectEqual(flow.originDrained(), .none)
        expectEqual(flow.originBroke(.nothing, .left), .none)
        expectEqual(flow.contentTimedOut(), .none)
    }
}

/// Puts rows, and lists of rows, into one list.
@resultBuilder enum Rows {
    static func buildExpression(_ row: Transcript.Row) -> [Transcript.Row] { [row] }
    static func buildExpression(_ rows: [Transcript.Row]) -> [Transcript.Row] { rows }
    static func buildBlock(_ parts: [Transcript.Row]...) -> [Transcript.Row] {
        parts.flatMap { $0 }
    }
}

extension Flow {
    /// The state without its payload; that of the leg where a server has the request.
    var stateName: String {
        let name = leg.map { String(describing: $0.phase) } ?? String(describing: state)
        return name.prefix { $0 != "(" }.description
    }
}

extension Transcript {
    static func on(_ event: Event, _ action: Flow.Action) -> Row { (event, .does(action)) }

    static func on(_ event: Event, takes place: Flow.Take) -> Row {
        (event, .takes(place, changesVerdict: false))
    }

    /// The verdict changes with it.
    static func on(_ event: Event, takesAnew place: Flow.Take) -> Row {
        (event, .takes(place, changesVerdict: true))
    }

    static func on(_ event: Event) -> Row { (event, .nothing) }

    static func on(_ event: Event, closesClient: Bool) -> Row {
        (event, .closesClient(closesClient))
    }

    /// The rule was found.
    static let routing: [Row] = [on(.routed)]

    /// A request without content is judged by its head.
    static let judging: [Row] = routing

    /// A request without content, of a rule that asks for nothing, is with a server.
    static func sent(_ via: Via = .reused) -> [Row] {
        routing + [on(.unjudged, .connect(.first))] + given(via)
    }

    /// A server was given all of the request with its head.
    static func given(_ via: Via = .reused) -> [Row] {
        [
            on(.connected(via), .sendHead(heldBytes: 0, .inOrder)),
            on(.headSent, .awaitResponse(.clear, .keep)),
        ]
    }

    /// The same, where the origin lets a request be sent once more so often.
    static func tried(_ via: Via, retriesMax: Int) -> [Row] {
        routing + [on(.unjudged, .connect(.first))] + again(via, retriesMax: retriesMax)
    }

    /// A server was given all of the request with its head.
    static func again(_ via: Via, retriesMax: Int) -> [Row] {
        [
            on(.connected(via, retriesMax: retriesMax), .sendHead(heldBytes: 0, .inOrder)),
            on(.headSent, .awaitResponse(.clear, .keep)),
        ]
    }

    /// Content that was not read is on its way through.
    static func streaming(_ via: Via = .reused) -> [Row] {
        routing + [on(.unjudged, .connect(.first))] + opened(via)
    }

    /// A server was given the head of a request whose content follows.
    static func opened(_ via: Via = .reused) -> [Row] {
        [
            on(.connected(via), .sendHead(heldBytes: 0, .byReset)),
            on(.headSent, .stream),
        ]
    }

    /// The verdict waits for content.
    static func holding(_ enforcement: Enforcement = .enforced) -> [Row] {
        routing + [on(.contentAwaited(enforcement), .hold)]
    }

    /// So many bytes were held and judged, in two pieces.
    static func held(_ count: Int) -> [Row] {
        holding() + [
            on(.received(count - 1), takes: .hold),
            on(.contentRead(isLast: false), .none),
            on(.received(1, isLast: true), takes: .hold),
            on(.contentRead(isLast: true), .judgeContent),
            on(.judged(.pass), .admit),
        ]
    }

    /// A response comes whole.
    static func response(_ held: Leg.HeldContent, _ release: Release = .pool) -> [Row] {
        [
            on(.responseBegan(.final(.keeps)), .relay(.behindRequest, held)),
            on(.responseEnded, .finish(release)),
        ]
    }
}
