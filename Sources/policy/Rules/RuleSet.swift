package import HTTPWire
import RequestBinding
package import Signatures

/// All rules of a configuration, in the order of the files, and the default after them.
///
/// Immutable and shared by all event loops. A reload makes a new one; requests under way keep
/// theirs.
package final class RuleSet: Sendable {
    /// The result of looking up a request's host, method and path.
    package enum Route: Sendable {
        case rule(Rule)
        /// The request is malformed, though it matches this rule.
        case malformed(Malformed.Reason, Rule)
        /// The path has several interpretations, and they lead to rules that decide differently.
        ///
        /// Whatever the origin does with such a path, one of the rules is bypassed. So each of them
        /// may refuse the request.
        case disputed(DisputedRoute)
    }

    /// The most method names that all rules may name in total.
    package static var methodsMax: Int { RouteIndex.methodsMax }

    /// The rules by their number; the last is the default, which matches every request.
    package let rules: [Rule]
    private let index: RouteIndex
    /// For each rule, the lowest number of a rule that decides like it.
    private let decisions: [Int32]
    /// For each rule, what its origin may do to a path.
    private let interpretations: [PathInterpretation]
    package let guardedFields: FieldNameSet
    /// Whether there are rules that decide differently at all.
    private let isMixed: Bool
    /// The ``decisions`` of the rules that verify or deny. The default is not one of them.
    private let strict: Set<Int32>

    /// `nil` when the rules name more than 63 methods in total, or when a rule's number is not its
    /// place.
    ///
    /// - Parameters:
    ///   - rules: in order, numbered from 0.
    ///   - fallback: the default, numbered after them.
    ///   - origins: what each origin may do to a path. A missing origin may do all that servers do.
    package init?(_ rules: [Rule], default fallback: Rule, origins: [PathInterpretation] = []) {
        guard let index = RouteIndex(rules.map(\.match)) else { return nil }
        let all = rules + [fallback]
        guard all.indices.allSatisfy({ all[$0].index == $0 }) else { return nil }
        self.index = index
        self.rules = all
        decisions = Self.decisions(all)
        guardedFields = all.reduce(into: FieldNameSet()) { $0.formUnion($1.guardedFields) }
        isMixed = decisions.contains { $0 != 0 }
        strict = Self.strict(all, decisions)
        interpretations = all.map { rule in
            // A rule that denies has no origin, so no interpretation can bypass it.
            guard let place = rule.origin?.rawValue else { return .asWritten }
            return origins.indices.contains(place) ? origins[place] : .all
        }
    }

    /// The index of the base, with other rules under the same numbers.
    private init(_ base: RuleSet, _ rules: [Rule]) {
        index = base.index
        self.rules = rules
        decisions = Self.decisions(rules)
        guardedFields = base.guardedFields
        isMixed = decisions.contains { $0 != 0 }
        strict = Self.strict(rules, decisions)
        interpretations = base.interpretations
    }

    /// The set with other modes and rollouts. Each rule keeps its number, match and origin.
    func replacing(_ rules: [Rule]) -> RuleSet {
        precondition(
            zip(rules, self.rules).allSatisfy { $0.match == $1.match && $0.origin == $1.origin }
                && rules.count == self.rules.count,
            "RuleSet: an order changed what a rule is for"
        )
        return RuleSet(self, rules)
    }

    /// The rule for requests that no other rule is for.
    package var fallback: Rule { rules[rules.count - 1] }

    /// Whether the gateway can serve no request while the key store fails: each rule denies, or
    /// enforces for all, refuses on errors, and takes nothing that can be checked without the store
    /// in the place of a signature.
    ///
    /// - isReadable: only writing fails, and there is room for changes in memory. Then requests
    ///   that don't wait for the disk pass as well.
    package func needsStore(at now: UnixTime, isReadable: Bool = false) -> Bool {
        rules.allSatisfy { rule in
            switch rule.mode {
            case .off, .observe: false
            case .deny: true
            case .enforce:
                rule.onError == .refuse && rule.rollout.share(at: now) == .whole
                    && !rule.passesWithoutStore && !(isReadable && rule.passesUnwritten)
            }
        }
    }

    /// The first rule that matches the request, in all interpretations of its path.
    ///
    /// The method is as in the request line; the host is that of the target or of the `Host` field,
    /// with a port or without. A peer of a Unix socket may have no address. The path is looked up
    /// as written. If the path, or a pattern on its way, has a construct that servers interpret in
    /// more than one way, it is also looked up in each interpretation that the origin of that rule
    /// may make. A plain path costs one look-up. The view is changed only in the storage that it
    /// keeps for interpretations.
    package func route(
        method: Span<UInt8>,
        host: Span<UInt8>,
        from client: IPAddress? = nil,
        view: inout TargetView
    ) -> Route {
        let methods = index.methods(method)
        var search = RouteIndex.Search(methods: methods ?? RouteIndex.otherMethod, from: client)
        index.find(&search, host: host, bytes: view.bytes.span, ends: view.ends.span)
        let found = number(search)
        let rule = rules[found]
        if let reason = view.refusal(allowing: rule.allowEncoded) {
            return .malformed(reason, rule)
        }
        if methods == nil {
            // Servers such as Django's turn methods into upper case. Whatever the path then leads
            // to is not looked up: every rule for the client has a say.
            let dispute = DisputedRoute(.methodCase, rule, rivals: others(than: rule, for: client))
            return dispute.isOpen ? .rule(rule) : .disputed(dispute)
        }
        guard isMixed else { return .rule(rule) }
        let made = steps(for: found)
        guard !view.steps(of: made).isEmpty || !search.decisive.isDisjoint(with: made) else {
            return .rule(rule)
        }
        var rivals: [Rule] = []
        let walk = visit(&search, host: host, view: &view, made: made) {
            interpretation,
            number,
            _,
            _ in
            guard isRival(number, of: found, interpretation) else { return true }
            let rival = rules[number]
            if !rivals.contains(where: { $0 === rival }) { rivals.append(rival) }
            return !rival.refusesAll
        }
        if case .tooMany = walk { rivals = others(than: rule, for: client) }
        let dispute = DisputedRoute(
            .pathAmbiguous,
            rule,
            rivals: rivals,
            isComplete: walk != .tooMany
        )
        return rivals.isEmpty || dispute.isOpen ? .rule(rule) : .disputed(dispute)
    }

    private func others(than rule: Rule, for client: IPAddress?) -> [Rule] {
        rules.filter { $0 !== rule && $0.match.takes(client: client) }
    }

    /// What the rule's origin may do to a path, as far as that can change the decision.
    private func steps(for found: Int) -> PathInterpretation {
        let made = interpretations[found].intersection(index.relevant)
        let isAlone = strict.isEmpty || strict.count == 1 && strict.contains(decisions[found])
        return isAlone ? made.subtracting(.ofRouters) : made
    }

    /// Whether the other rule decides about the request too, because in this interpretation the
    /// request belongs to it.
    ///
    /// Servers treat all paths alike, so every difference counts. What routers do depends on the
    /// application, which may use paths of these forms on purpose. There the other rule counts only
    /// if it stops requests, or would once it enforces; where the rule of the written path enforces
    /// already, only if it stops requests.
    private func isRival(_ number: Int, of found: Int, _ interpretation: PathInterpretation) -> Bool
    {
        let decision = decisions[number]
        guard decision != decisions[found] else { return false }
        guard !interpretation.isDisjoint(with: .ofRouters) else { return true }
        guard number != rules.count - 1 else { return false }
        return rules[found].mode == .enforce
            ? !rules[number].mode.isOpen : rules[number].mode != .off
    }

    /// The set in which one of its rules enforces for all clients.
    package func enforcing(_ rule: Rule) -> RuleSet {
        replacing(rules.map { $0 === rule ? $0.ordered(.share(.whole)) : $0 })
    }

    /// The most walks through the interpretations of one path.
    private static let walksMax = 3

    /// Looks up the path in every interpretation of these steps that can lead elsewhere.
    ///
    /// Steps that change a pattern and not the path matter once the path is on that pattern's way.
    /// After a walk that meets such a pattern, another walk includes these steps.
    private func visit(
        _ search: inout RouteIndex.Search,
        host: Span<UInt8>,
        view: inout TargetView,
        made: PathInterpretation,
        visitor: (PathInterpretation, Int, Span<UInt8>, Span<UInt32>) -> Bool
    ) -> TargetView.Walk {
        let steps = view.steps(of: made)
        // An interpretation may leave out an index, or a script's name and all folders before it.
        let depth = steps.contains(.dropsScript) ? TargetView.segmentsMax : index.depth + 2
        var walks = 1
        while true {
            let odd = (walks < Self.walksMax ? search.decisive : index.odd).intersection(made)
            let walk = view.visitInterpretations(steps.union(odd), odd: odd, depth: depth) {
                search.begin($0)
                index.find(&search, host: host, bytes: $1, ends: $2)
                return visitor($0, number(search), $1, $2)
            }
            guard walk == .complete, walks < Self.walksMax,
                !search.decisive.intersection(made).isSubset(of: odd)
            else { return walk }
            walks += 1
        }
    }

    private func number(_ search: RouteIndex.Search) -> Int {
        search.best == .max ? rules.count - 1 : Int(search.best)
    }

    private static func strict(_ rules: [Rule], _ decisions: [Int32]) -> Set<Int32> {
        Set(
            rules.dropLast().filter { $0.mode != .off }.map { decisions[$0.index] }
        )
    }

    /// Groups the rules by their decision.
    private static func decisions(_ rules: [Rule]) -> [Int32] {
        // Rules of different kinds surely differ, so they are not compared.
        struct Kind: Hashable {
            let origin: OriginIndex?
            let mode: Mode
            let salt: String?
            let signing: SigningForm?
            let body: BodyRule?
        }
        var groups: [Kind: [Int]] = [:]
        return rules.indices.map { place in
            let rule = rules[place]
            let kind = Kind(
                origin: rule.origin,
                mode: rule.mode,
                salt: rule.dependsOnBucket ? rule.demands.rollout.salt : nil,
                signing: rule.mode.verifies ? rule.signing : nil,
                body: rule.mode.verifies ? rule.body : nil
            )
            let first = groups[kind]?.first { rules[$0].decidesLike(rule) }
            if first == nil { groups[kind, default: []].append(place) }
            return Int32(clamping: first ?? place)
        }
    }
}

extension RuleSet {
    /// An interpretation of a path, and the rule that it leads to.
    package struct Interpretation: Sendable {
        package let interpretation: PathInterpretation
        /// The path in this interpretation, each segment after a slash.
        package let path: [UInt8]
        package let rule: Rule
        /// Whether the rule decides differently from the rule of the written path.
        package let isRival: Bool
    }

    /// Every interpretation that is looked up for this request, in that order; the written path
    /// comes first. For explanations.
    package func readings(
        method: Span<UInt8>,
        host: Span<UInt8>,
        from client: IPAddress? = nil,
        view: inout TargetView
    ) -> [Interpretation] {
        let methods = index.methods(method) ?? RouteIndex.otherMethod
        var search = RouteIndex.Search(methods: methods, from: client)
        index.find(&search, host: host, bytes: view.bytes.span, ends: view.ends.span)
        let found = number(search)
        var all = [
            Interpretation(
                interpretation: .asWritten,
                path: Self.path(.asWritten, of: view.bytes.span, ends: view.ends.span),
                rule: rules[found],
                isRival: false
            )
        ]
        _ = visit(&search, host: host, view: &view, made: steps(for: found)) {
            interpretation,
            number,
            bytes,
            ends in
            all.append(
                Interpretation(
                    interpretation: interpretation,
                    path: Self.path(interpretation, of: bytes, ends: ends),
                    rule: rules[number],
                    isRival: isRival(number, of: found, interpretation)
                )
            )
            return true
        }
        return all
    }

    private static func path(
        _ interpretation: PathInterpretation,
        of bytes: Span<UInt8>,
        ends: Span<UInt32>
    ) -> [UInt8] {
        guard !ends.isEmpty else { return [UInt8(ascii: "/")] }
        var path: [UInt8] = []
        var start = 0
        for place in ends.indices {
            path.append(UInt8(ascii: "/"))
            for index in start..<Int(ends[place]) {
                path.append(interpretation.folded(bytes[index]))
            }
            start = Int(ends[place])
        }
        return path
    }
}

extension RuleSet {
    /// The result of routing a head. The gateway and `explain` call the same function.
    package enum Destination: Sendable {
        /// The request is judged, forwarded or denied as this rule says.
        case rule(Rule)
        /// The request matches this rule and is answered as malformed.
        case unroutable(Rule, Malformed.Reason)
        /// The rules decide about the request by mode and rollout, before it is judged.
        case disputed(DisputedRoute)
    }

    /// Finds the rule of a request, and whether the request can be routed at all.
    ///
    /// Checked in this order: what ``route(method:host:from:view:)`` checks, then that `Connection`
    /// names no field that the rule signs or reads. Such a field would end here, after it was
    /// verified.
    ///
    /// - Parameters:
    ///   - head: a head that was read.
    ///   - bytes: the bytes that it was read from.
    ///   - client: the client's address; `nil` for a peer without one.
    ///   - view: storage for the target's interpretations; the function reads the target into it.
    /// - Returns: the rule in every case, for the log.
    package func destination(
        of head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        from client: IPAddress?,
        view: inout TargetView
    ) -> Destination {
        view.read(head, bytes)
        let route = route(
            method: bytes.extracting(head.methodRange),
            host: bytes.extracting(head.authority),
            from: client,
            view: &view
        )
        switch route {
        case .rule(let rule):
            guard !rule.isNominated(by: head, bytes) else {
                return .disputed(DisputedRoute(.connectionNomination, rule))
            }
            return .rule(rule)
        case .malformed(let reason, let rule): return .unroutable(rule, reason)
        // The gateway does not know to which of the rules the origin maps the path.
        case .disputed(let dispute): return .disputed(dispute)
        }
    }
}

extension Rule {
    /// Whether Connection names a field that the rule signs or reads.
    fileprivate func isNominated(by head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Bool {
        guard mode != .off, head.fields.connection.nominations > 0 else { return false }
        for field in head.fields.fields
        where field.isNominated && guardedFields.contains(bytes, field.name) {
            return true
        }
        return false
    }

    /// Whether a replay is stopped after a crash although the counter is not on disk, so that a
    /// request need not wait for it. The challenge stops it, where the line form signs it and the
    /// rule requires it: it dies with the process. An assertion of another form could be sent to a
    /// rule that asks for no challenge.
    package var survivesCrash: Bool {
        guard challenge == .required, case .lines(let parts, _) = signing else { return false }
        return parts.contains(.challenge)
    }

    /// Whether clients that sign pass while the store can be read and not written: the disk is not
    /// waited for.
    fileprivate var passesUnwritten: Bool {
        (accept.takesSessions || accept.takesAssertions && survivesCrash)
            && also.allSatisfy(\.passesWithoutStore)
    }

    /// Whether clients that can't attest, or that have a token, pass while the store fails.
    fileprivate var passesWithoutStore: Bool {
        var standIns = accept.tokens
        switch unsupported {
        case .refuse: break
        case .forward: return true
        case .require(let token): standIns.append(token)
        }
        return standIns.contains(where: \.passesWithoutStore)
            && also.allSatisfy(\.passesWithoutStore)
    }
}
