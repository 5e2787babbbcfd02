package import HTTPWire
package import Rules

/// The paths that the gateway answers itself on a listener.
///
/// Every request searches it, so it is a reference and compares bytes in place.
package final class ServiceTable: Sendable {
    /// Whose requests it answers.
    enum Audience: Sendable {
        /// Clients'. The rules route the paths that are not below the prefix. With the open trials
        /// of fronts.
        case clients((any TrialKeeping)?)
        /// Operators'. Other paths are unknown: nothing is forwarded. The answer to one lists the
        /// known ones. The gate decides who may ask for what.
        case operators(OperatorGate)
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
    private let audience: Audience
    /// Those that are served.
    private let entries: [ServiceEntry]
    private let probes: [Probe]

    init(
        below prefix: String,
        for audience: Audience,
        _ entries: [ServiceEntry],
        probes: [Probe] = []
    ) {
        self.prefix = Array(prefix.utf8)
        self.audience = audience
        self.entries =
            switch audience {
            case .clients: entries
            case .operators(let gate): entries.filter { gate.serves($0.terms.access) }
            }
        self.probes = probes
    }

    /// The open trials of fronts; `nil` on the operators' listener.
    var trials: (any TrialKeeping)? {
        if case .clients(let trials) = audience { trials } else { nil }
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
            return switch audience {
            case .clients: .none
            case .operators: unknownPath()
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
            let fault: LocalFault =
                switch audience {
                case .clients: .methodNotAllowed
                case .operators: .methodRefused
                }
            return .refused(LocalResponse(.fault(fault), details), name: "wrong-method")
        }
        if case .operators(let gate) = audience,
            let fault = gate.fault(for: entry.terms.access, head, bytes)
        {
            return .refused(LocalResponse(.fault(fault)), name: entry.name)
        }
        let hasContent = head.framing != .none && head.framing != .length(0)
        guard entry.terms.takesContent || !hasContent else {
            return .refused(LocalResponse(.fault(.contentRefused)), name: entry.name)
        }
        if let unchanged = entry.terms.unchanged, head.fields.hasMatch(of: unchanged.tag, bytes) {
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
        let fault: LocalFault
        switch audience {
        case .clients: fault = .endpointUnknown
        case .operators:
            fault = .pageUnknown
            details.list = ("pages", entries.map { "/" + $0.name })
        }
        return .refused(LocalResponse(.fault(fault), details), name: "unknown")
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

    /// What a request of it costs and needs.
    package struct Terms: Sendable {
        /// Whether a request may have content.
        package var takesContent = false
        package var cost = Cost.nothing
        /// The rule that judges a request before the service is asked; `nil` for none.
        package var rule: Rule?
        /// The proofs whose tokens the service looks for.
        package var tokens: [TokenProof] = []
        /// Whether the service needs the caller's name.
        package var tellsCaller = false
        /// The access that it needs on the operators' listener.
        var access = OperatorGate.Access.open
        /// The most bytes of its content; `nil` for `limits.endpoint_body`.
        package var contentMax: UInt64?
        /// Answers a client that already has the answer; `nil` where the service always answers in
        /// full.
        var unchanged: Unchanged?
    }

    /// The path after the table's prefix and a slash; the name in the access log.
    package let name: String
    /// The methods that are served; a 405 lists them.
    package let methods: [Method]
    package let terms: Terms
    package let service: any Service

    /// The gateway that the query of an operator's request names, as `?gateway=NAME`; `nil` for
    /// none. Names of gateways need no escapes.
    package func gateway(in query: Range<Int>, _ bytes: Span<UInt8>) -> String? {
        switch terms.access {
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
        on terms: Terms = Terms(),
        by service: any Service
    ) {
        self.name = name
        self.methods = methods
        self.terms = terms
        self.service = service
    }
}
