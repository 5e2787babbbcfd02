import ConfigurationReading
import KeyStore
import Logging
import Parties
import Services

/// The calls to others: the parties, the client that makes their calls, and the collector of spans.
struct OutsideCalls: Sendable {
    let parties: PartyList
    /// Sends spans to a collector.
    let tracing: SpanExporter
    private let https: HTTPSCalls

    init(
        _ configuration: GatewayConfiguration,
        _ decider: Decider,
        wallClock: @escaping @Sendable () -> Int64,
        log: Logger
    ) {
        let https = HTTPSCalls()
        let store = PartyStore(
            copies: KeptFiles.path(configuration),
            archive: { [place = configuration.store] () throws(StoreProblem) in
                try place.archive()
            }
        )
        let context = PartyContext(
            transport: https,
            decider: decider,
            log: log,
            wallClock: wallClock,
            store: store
        )
        self.https = https
        parties = PartyList(
            configuration.partySettings,
            proving: configuration.parties,
            context
        )
        tracing = SpanExporter(configuration.tracing, over: https, log: log)
    }

    /// Begins, before a client is accepted. Waits for the disk.
    func start() { parties.start() }

    /// A reload is about to serve this configuration: from then on its proofs may be checked.
    func serves(_ configuration: GatewayConfiguration) {
        parties.proofs.serves(configuration.proofs.map(\.settings))
    }

    /// A reload serves this configuration.
    func loaded(_ configuration: GatewayConfiguration) {
        parties.loaded(configuration.partySettings)
        tracing.reload(configuration.tracing)
    }

    /// Begins no call by itself any more: the gateway ends, or its successor makes them.
    func end() { parties.end() }

    /// Waits until the parties have what was promised, at most for a time. `done` gets the number
    /// of changes that they do not have.
    func finish(within time: Duration, _ done: @escaping @Sendable (_ changesLeft: Int) -> Void) {
        parties.devices.finish(within: min(time, DeviceCheckClient.finishTime), done)
    }

    /// Ends the calls under way; `done` is called once, soon.
    func stop(_ done: @escaping @Sendable () -> Void) {
        parties.stop { [https] in https.stop(done) }
    }

    /// What operators read, in the order of the pages.
    var facts: [any PartyFacts] { parties.facts + [tracing.facts] }
}

extension GatewayConfiguration {
    fileprivate var partySettings: PartySettings {
        PartySettings(
            apple: settings.apple,
            google: settings.google,
            apps: settings.apps,
            proofs: settings.proofs.map(\.settings)
        )
    }
}
