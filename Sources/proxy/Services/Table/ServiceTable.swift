package import HTTPWire
package import Rules

/// The paths that the gateway answers itself on a listener.
///
/// Every request searches it, so it is a reference and compares bytes in place.
package final class ServiceTable: Sendable {
    /// The treatment of paths that are not below the prefix.
    enum Elsewhere: Sendable {
        /// The rules route them.
        case routed
        /// They are unknown: nothing is forwarded.
        case unknown
    }

    /// A path outside of the prefix.
    struct Probe: Sendable {
        let path: [UInt8]
        let entry: ServiceEntry

        init(_ path: String, _ entry: ServiceEntry) {
            (self.path, self.entry) = (Array(path.utf8), entry)
        }
    }

    /// The result for a request.
    package enum Match: Sendable {
        /// The path is not the gateway's.
        case none
        /// The request has passed this gateway before (RFC 9110 §7.6).
        case loop
        /// An OPTIONS request that may take no more hops (RFC 9110 §7.6.2).
        case lastHop
        case service(ServiceEntry)
        /// The path is the gateway's, and the request is not served. `name` is for the access log.
        case refused(LocalResponse, name: String)
    }

    /// The gateway's own paths begin with it, without a slash at its end.
    private let prefix: [UInt8]
    private let elsewhere: Elsewhere
    /// Those that ``gate`` serves.
    private let entries: [ServiceEntry]
    private let probes: [Probe]
    private let unknown: LocalFault
    private let wrongMethod: LocalFault
    /// Whether the answer to an unknown path lists the known ones.
    private let listsPaths: Bool
    /// Decides who may ask for what.
    private let gate: OperatorGate
    /// The open trials of fronts; `nil` on the operators' listener.
    let trials: (any TrialKeeping)?

    init(
        below prefix: String,
        elsewhere: Elsewhere,
        _ entries: [ServiceEntry],
        probes: [Probe] = [],
        unknown: LocalFault,
        wrongMethod: LocalFault,
        listsPaths: Bool,
        gate: OperatorGate = OperatorGate(),
        trials: (any TrialKeeping)? = nil
    ) {
        self.prefix = Array(prefix.utf8)
        self.elsewhere = elsewhere
        self.entries = entries.filter { gate.serves($0.access) }
        self.probes = probes
        self.unknown = unknown
        self.wrongMethod = wrongMethod
        self.listsPaths = listsPaths
        self.gate = gate
        self.trials = trials
    }

    /// Finds the service for a request. Paths are compared byte by byte: another spelling of a path
    /// is another path. Checked in this order: loop, last hop, path, method, access, content.
    ///
    /// - bytes: the bytes of the head.
    package func find(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Match {
        if head.hasPassedHere(bytes) { return .loop }
        if head.maxForwards(bytes) == 0 { return .lastHop }
        guard let name = name(bytes, head.path) else {
            if let probe = probe(bytes, head.path) { return match(probe, head: head, bytes: bytes) }
            return switch elsewhere {
            case .routed: .none
            case .unknown: unknownPath()
            }
        }
        let entry = entries.first { entry in
            entry.name.utf8.count == name.count
                && zip(entry.name.utf8, name).allSatisfy { $0 == bytes[$1] }
        }
        return entry.map { match($0, head: head, bytes: bytes) } ?? unknownPath()
    }

    /// Checks method, access and content.
    private func match(
        _ entry: ServiceEntry,
        head: borrowing RequestHead,
        bytes: Span<UInt8>
    ) -> Match {
        guard entry.methods.contains(head.method) else {
            var details = LocalResponse.Details()
            details.allowed = entry.methods
            return .refused(LocalResponse(.fault(wrongMethod), details), name: "wrong-method")
        }
        if let fault = gate.fault(entry.access, head, bytes) {
            return .refused(LocalResponse(.fault(fault)), name: entry.name)
        }
        let hasContent = head.framing != .none && head.framing != .length(0)
        guard entry.takesContent || !hasContent else {
            return .refused(LocalResponse(.fault(.contentRefused)), name: entry.name)
        }
        if let unchanged = entry.unchanged, head.fields.hasMatch(of: unchanged.tag, bytes) {
            return .service(unchanged.entry)
        }
        return .service(entry)
    }

    /// Where the service's name is; `nil` when the path is not below the prefix.
    private func name(_ bytes: Span<UInt8>, _ path: Range<Int>) -> Range<Int>? {
        guard let end = prefixEnd(bytes, path), end < path.upperBound,
            bytes[end] == UInt8(ascii: "/")
        else { return nil }
        return end + 1..<path.upperBound
    }

    /// Where the id of a trial begins; `nil` when the path is not that of one.
    func trialStart(_ bytes: Span<UInt8>, _ path: Range<Int>) -> Int? {
        let suffix = FrontTrials.suffix.utf8
        guard let end = prefixEnd(bytes, path), end + suffix.count <= path.upperBound,
            zip(suffix, end...).allSatisfy({ $0 == bytes[$1] })
        else { return nil }
        return end + suffix.count
    }

    /// Where the prefix ends in a path that begins with it.
    private func prefixEnd(_ bytes: Span<UInt8>, _ path: Range<Int>) -> Int? {
        guard path.count >= prefix.count else { return nil }
        for index in prefix.indices where bytes[path.lowerBound + index] != prefix[index] {
            return nil
        }
        return path.lowerBound + prefix.count
    }

    /// The probe of a path; there are two at most.
    private func probe(_ bytes: Span<UInt8>, _ path: Range<Int>) -> ServiceEntry? {
        let probe = probes.first { probe in
            probe.path.count == path.count
                && zip(probe.path, path).allSatisfy { $0 == bytes[$1] }
        }
        return probe?.entry
    }

    private func unknownPath() -> Match {
        var details = LocalResponse.Details()
        if listsPaths { details.list = ("pages", entries.map { "/" + $0.name }) }
        return .refused(LocalResponse(.fault(unknown), details), name: "unknown")
    }
}

/// One row of a ``ServiceTable``: a path, its methods and access, and its service.
///
/// A reference, so that a request carries it at the price of one count.
package final class ServiceEntry: Sendable {
    /// The cost of a request for the client's address.
    package enum Cost: Sendable {
        case nothing
        /// A call of the address's rate.
        case call
        /// A call, and a verification, which may fail.
        case verification
    }

    /// The path after the table's prefix and a slash; the name in the access log.
    package let name: String
    /// The methods that are served; a 405 lists them.
    package let methods: [Method]
    /// Whether a request may have content.
    package let takesContent: Bool
    package let cost: Cost
    /// The most bytes of its content; `nil` for `limits.endpoint_body`.
    package let contentMax: UInt64?
    /// The rule that judges a request before the service is asked; `nil` for none.
    package let rule: Rule?
    /// The proofs whose tokens the service looks for.
    package let tokens: [TokenProof]
    /// Whether the service needs the caller's name.
    package let tellsCaller: Bool
    /// The access that it needs on the operators' listener.
    let access: OperatorGate.Access
    package let service: any Service
    /// Answers a client that already has the answer; `nil` where the service always answers in
    /// full.
    let unchanged: Unchanged?

    /// The gateway that the query of an operator's request names, as `?gateway=NAME`; `nil` for
    /// none. Names of gateways need no escapes.
    package func gateway(in query: Range<Int>, _ bytes: Span<UInt8>) -> String? {
        switch access {
        case .open: return nil
        case .metrics, .page, .lookup, .call: break
        }
        let text = String(decoding: query.map { bytes[$0] }, as: UTF8.self)
        return text.hasPrefix("?gateway=") ? String(text.dropFirst(9)) : nil
    }

    /// A second answer, for requests that name an entity tag.
    struct Unchanged: Sendable {
        /// With its quotes.
        let tag: [UInt8]
        let entry: ServiceEntry
    }

    init(
        _ name: String,
        _ methods: [Method],
        takesContent: Bool,
        cost: Cost,
        rule: Rule? = nil,
        tokens: [TokenProof] = [],
        tellsCaller: Bool = false,
        access: OperatorGate.Access = .open,
        contentMax: UInt64? = nil,
        unchanged: Unchanged? = nil,
        _ service: any Service
    ) {
        self.name = name
        self.methods = methods
        self.takesContent = takesContent
        self.cost = cost
        self.rule = rule
        self.tokens = tokens
        self.tellsCaller = tellsCaller
        self.access = access
        self.contentMax = contentMax
        self.unchanged = unchanged
        self.service = service
    }

    /// A row of the operators' listener, where requests cost nothing.
    convenience init(
        _ name: String,
        _ methods: [Method],
        takesContent: Bool = false,
        tellsCaller: Bool = false,
        access: OperatorGate.Access,
        _ service: any Service
    ) {
        self.init(
            name,
            methods,
            takesContent: takesContent,
            cost: .nothing,
            tellsCaller: tellsCaller,
            access: access,
            service
        )
    }
}
