package import AppleServices
import Dispatch
import KeyStore
import Logging
import Services

// What operators are told of Apple's services. No line has a token, a key id, a receipt or a device
// token: a notice holds none.
extension GatewayServer {
    /// Where calls to Apple's services are handed in.
    package var appleServices: any AppleCalling { apple }

    /// A call ended as none has in the last minute, or a host is left alone or back.
    func appleChanged(_ notice: CallNotice, _ detail: String?) {
        dispatchPrecondition(condition: .onQueue(control))
        switch notice {
        case .breaker(let host, let condition): tell(host, condition)
        case .ended(let service, let environment, let reply, let untold):
            let more = untold > 0 ? ", and \(untold) more times since this was last told" : ""
            let words =
                "Apple's \(service.rawValue), \(environment.rawValue): \(reply.words)\(more)"
            let because = detail.map { " (\($0))" } ?? ""
            guard let next = reply.next(service.family) else { return log.debug("\(words)") }
            log.warning("\(words)\(because); next: \(next)")
        }
    }

    private func tell(_ host: AppleHost, _ condition: CallBreaker.Condition) {
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

    /// How the calls stand, for the admin pages.
    var appleFacts: AppleFacts {
        apple.read { book in
            AppleFacts(
                ends: book.tally.sortedEnds.map { end, count in
                    AppleFacts.End(
                        service: end.service.rawValue,
                        environment: end.environment.rawValue,
                        status: end.status,
                        count: count
                    )
                },
                hosts: book.standing.map { host, line in
                    AppleFacts.Host(
                        service: host.family.rawValue,
                        environment: host.environment.rawValue,
                        waiting: line.waitingCount,
                        underWay: line.underWayCount,
                        breaker: line.condition.rawValue
                    )
                },
                breakers: CallBreaker.Condition.allCases.map(\.rawValue),
                durations: AppleService.Family.allCases.compactMap { family in
                    book.tally.durations[family].map { (family.rawValue, $0) }
                },
                tokens: book.tally.tokens
            )
        }
    }
}

extension AppleReply.Summary {
    fileprivate var words: String {
        switch self {
        case .status(let status): "answered \(status)"
        case .unsent(let fault): "not called, \(fault.rawValue)"
        case .failed(let fault): "failed, \(fault.rawValue)"
        }
    }

    /// What to do about it; `nil` where nothing is wrong.
    fileprivate func next(_ family: AppleService.Family) -> String? {
        switch self {
        case .status(200), .status(304): nil
        // A receipt that Apple has nothing for any more is no fault.
        case .status(404) where family == .receipts: nil
        case .status(400):
            "look whether hosts and environment belong together, and at this machine's clock"
        case .status(401), .status(403):
            "look at apple.keys: team, key_id and file belong together, and the key has DeviceCheck"
        case .status(429): "lower apple.rate or what asks; calls pause as long as Apple wants"
        case .status(500...): "wait: Apple's service has a fault"
        case .status: "see deploy/README.md, Apple's services"
        case .unsent(let fault), .failed(let fault): fault.next
        }
    }
}

extension AppleFault {
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
