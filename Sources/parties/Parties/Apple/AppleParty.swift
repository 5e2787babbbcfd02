import AppAttest
import ConfigurationReading
import Dispatch
import KeyStore
import Logging
import OutboundCalls
import Parties
import Services

/// Apple's services: the calls, the bits of devices, the renewal of receipts, and their logs for
/// operators. No line has a token, a whole key id, a receipt or a device token.
final class AppleOperations: Sendable {
    let calls: AppleClient
    /// Asks Apple about devices.
    let devices: DeviceCheckClient
    private let plane: ControlPlane
    private let keys: KeyTable
    /// The queue on which receipts are opened, which reads files.
    private let queue = DispatchQueue(label: "portcullis.receipts")
    /// Renews receipts; `nil` where the store keeps none.
    private let renewer: QueueBound<ReceiptRenewer?>

    init(
        _ plane: ControlPlane,
        _ calls: AppleClient,
        _ devices: DeviceCheckClient,
        _ keys: KeyTable
    ) {
        self.plane = plane
        self.calls = calls
        self.devices = devices
        self.keys = keys
        renewer = QueueBound(nil, on: plane.queue)
    }

    /// Reports on calls, and begins to renew where the store keeps receipts.
    func start() {
        calls.watch { [self] notice, detail in
            plane.perform { self.changed(notice, detail) }
        }
        queue.async { [self] in
            let opened = Result { () throws(JournalError) in try keys.receiptStore() }
            plane.perform { self.renew(opened) }
        }
    }

    /// A reload has read the settings of Apple's services.
    func loaded(_ configuration: GatewayConfiguration) {
        calls.reload(configuration.apple)
        devices.reload(DeviceCheckClient.Terms(configuration.apple))
        renewer.value?.reload(ReceiptRenewer.Settings(configuration))
    }

    /// Stops renewing: the gateway ends, or the successor renews.
    func endRenewing() { renewer.value?.end() }

    var receiptFacts: ReceiptFacts? { renewer.value?.facts }

    private func renew(_ opened: Result<(any ReceiptStore)?, JournalError>) {
        guard !plane.isDraining else { return }
        let receipts: any ReceiptStore
        switch opened {
        case .failure(let error):
            return plane.log.error("the receipts can't be read, so none are renewed: \(error)")
        case .success(nil): return
        case .success(let some?): receipts = some
        }
        let renewer = ReceiptRenewer(
            ReceiptRenewer.Settings(plane.configuration),
            keys: keys,
            receipts: receipts,
            apple: calls,
            clock: RenewalClock(now: plane.surroundings.wallClock)
        ) { [self] notice in
            plane.perform { self.tell(notice) }
        }
        self.renewer.value = renewer
        renewer.start()
    }

    private func tell(_ notice: ReceiptRenewer.Notice) {
        let next: String
        switch notice {
        case .paused(let environment, let seconds):
            plane.log.warning(
                """
                receipts: none of \(environment.rawValue) are renewed for \(seconds) s, since \
                Apple does not answer them or refuses one after the other; next: see what is said \
                of Apple's receipts
                """
            )
            return
        case .refused(let keyID, let refusal):
            next = "\(refusal.reason.nextStep) The stored receipt stays"
            plane.log.warning(
                "receipts: what came for key \(keyID.logName) is refused, \(refusal); next: \(next)"
            )
        case .rejected(let keyID, let status):
            next = "see whether apple.hosts and the key's environment belong together"
            plane.log.warning(
                """
                receipts: Apple answered \(status) to the receipt of key \(keyID.logName), which \
                is left alone for a week; next: \(next)
                """
            )
        case .unreadable(let error):
            plane.log.error("receipts: the store can't be read, \(error); it is tried again")
        }
    }

    /// A call ended as none has in the last minute, or a host is in backoff or back.
    private func changed(_ notice: CallNotice<AppleCall>, _ detail: String?) {
        switch notice {
        case .breaker(let host, let condition): tell(host, condition)
        case .ended(let kind, let reply, let untold):
            let more = untold > 0 ? ", and \(untold) more times since this was last told" : ""
            let service = "\(kind.service.rawValue), \(kind.environment.rawValue)"
            let words = "Apple's \(service): \(reply.words)\(more)"
            let because = detail.map { " (\($0))" } ?? ""
            guard let next = reply.next(kind.service.family) else {
                return plane.log.debug("\(words)")
            }
            plane.log.warning("\(words)\(because); next: \(next)")
        }
    }

    private func tell(_ host: AppleHost, _ condition: CallBreaker.Condition) {
        let name = "Apple's \(host.family.rawValue), \(host.environment.rawValue)"
        switch condition {
        case .open:
            plane.log.error(
                """
                \(name): left alone for a while, since calls failed one after the other or Apple \
                asked for it; calls are answered breaker-open meanwhile
                """
            )
        case .halfOpen: plane.log.info("\(name): one call tries whether it works again")
        case .closed: plane.log.notice("\(name): works again")
        }
    }

    /// The state of the calls, for the admin pages.
    var facts: AppleFacts {
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

extension ReceiptRenewer.Settings {
    /// The settings of a configuration. Without a key for Apple nothing is renewed.
    init(_ configuration: GatewayConfiguration) {
        var renewal = configuration.apple.receipts
        if configuration.apple.credentials.isEmpty { renewal.renews = false }
        self.init(
            renewal: renewal,
            apps: configuration.apps,
            teams: AppleTeams(configuration.apple.credentials),
            timeout: configuration.apple.timeout
        )
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
        case .status: "see deploy/docs/apple-services.md"
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
