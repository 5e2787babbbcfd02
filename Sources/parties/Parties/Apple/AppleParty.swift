import KeyStore
import Logging
import OutboundCalls
import Services

/// The calls to Apple's services, which `Receipts` and `DeviceCheck` make, and what operators read
/// of them.
struct AppleParty: Party {
    let calls: AppleClient

    init(_ settings: AppleSettings, _ context: PartyContext) {
        calls = AppleClient(
            named: "apple",
            settings,
            over: context.transport,
            wallClock: context.wallClock
        )
        calls.watch { [log = context.log] notice, detail in
            Self.tell(notice, detail, in: log)
        }
    }

    func loaded(_ settings: PartySettings) { calls.reload(settings.apple) }

    func stop(_ ended: @escaping @Sendable () -> Void) { calls.stop(ended) }

    // MARK: For operators

    /// A call ended as none has in the last minute, or a host is in backoff or back.
    private static func tell(
        _ notice: CallNotice<AppleCall>,
        _ detail: String?,
        in log: Logger
    ) {
        switch notice {
        case .breaker(let host, let condition): tell(host, condition, in: log)
        case .ended(let kind, let reply, let untold):
            let more = untold > 0 ? ", and \(untold) more times since this was last told" : ""
            let service = "\(kind.service.rawValue), \(kind.environment.rawValue)"
            let words = "Apple's \(service): \(reply.words)\(more)"
            let because = detail.map { " (\($0))" } ?? ""
            guard let next = reply.next(kind.service.family) else {
                return log.debug("\(words)")
            }
            log.warning("\(words)\(because); next: \(next)")
        }
    }

    private static func tell(
        _ host: AppleHost,
        _ condition: CallBreaker.Condition,
        in log: Logger
    ) {
        let name = "Apple's \(host.family.rawValue), \(host.environment.rawValue)"
        switch condition {
        case .open:
            log.error(
                """
                \(name): left alone for a while, since calls failed one after the other or Apple \
                asked for it; calls are answered breaker-open meanwhile
                """
            )
        case .halfOpen: log.info("\(name): one call tries whether it works again")
        case .closed: log.notice("\(name): works again")
        }
    }

    var facts: [any PartyFacts] { [callFacts] }

    private var callFacts: AppleFacts {
        calls.read { machine in
            var facts = AppleFacts()
            facts.ends = machine.tally.sortedEnds.map { end, count in
                AppleFacts.End(
                    service: end.kind.service.rawValue,
                    environment: end.kind.environment.rawValue,
                    status: end.status,
                    count: count
                )
            }
            facts.hosts = machine.standing.map { host, line in
                CallLineFacts(
                    labels: [
                        ("service", host.family.rawValue),
                        ("environment", host.environment.rawValue),
                    ],
                    waiting: line.waitingCount,
                    underWay: line.underWayCount,
                    breaker: line.condition.rawValue
                )
            }
            facts.breakers = CallBreaker.Condition.allCases.map(\.rawValue)
            facts.durations = AppleService.Family.allCases.compactMap { family in
                machine.tally.durations[family].map { (family.rawValue, $0) }
            }
            facts.tokens = machine.party.tokensSigned
            return facts
        }
    }
}

extension CallReply.Summary {
    fileprivate var words: String {
        switch self {
        case .status(let status): "answered \(status)"
        case .unsent(let fault): "not called, \(fault.rawValue)"
        case .failed(let fault): "failed, \(fault.rawValue)"
        }
    }

    /// The next step for the operator; `nil` without a fault.
    fileprivate func next(_ family: AppleService.Family) -> String? {
        switch self {
        case .status(200), .status(304): nil
        // It is no fault if Apple has nothing for a receipt any more.
        case .status(404) where family == .receipts: nil
        case .status(400):
            "look whether hosts and environment belong together, and at this machine's clock"
        case .status(401), .status(403):
            "look at apple.keys: team, key_id and file belong together, and the key has DeviceCheck"
        case .status(429): "lower apple.rate or what asks; calls pause as long as Apple wants"
        case .status(500...): "wait: Apple's service has a fault"
        case .status: "portcullis help apple-services"
        case .unsent(let fault), .failed(let fault): fault.next
        }
    }
}

extension CallFailure {
    fileprivate var next: String {
        switch self {
        case .noCredential: "give apple.keys the key of the team"
        case .noHost: "give apple.hosts a host for keys of a test authority, or don't ask for them"
        case .queueFull, .queueTimeout:
            "raise apple.rate, apple.concurrent or apple.queue, or ask less"
        case .breakerOpen: "see the errors before this one"
        case .stopping: "nothing: the gateway ends"
        case .unreachable: "look at this machine's names, routes and firewall, or at apple.proxy"
        case .tls: "look at apple.roots, or at this machine's certificates (ca-certificates)"
        case .timeout: "look at the network, or raise apple.timeout"
        case .broken, .garbled, .answerTooLong:
            "look at what is between this machine and Apple; apple.hosts names what is called"
        }
    }
}
