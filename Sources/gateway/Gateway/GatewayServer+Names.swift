import ConfigurationReading
import Dispatch
import Logging
import Origins
import Proxy

// The names of origins' servers are looked up at start and reload, and then again and again: a
// name that had no address may get one, and servers move.
extension GatewayServer {
    /// Looks the names up after a pause; the next call takes the place of this one.
    func scheduleLookUp() {
        dispatchPrecondition(condition: .onQueue(control))
        lookUpNumber += 1
        let hasNames = configuration.origins.contains { origin in
            origin.addresses.contains { if case .name = $0 { true } else { false } }
        }
        guard hasNames, !isDraining else { return }
        let number = lookUpNumber
        let shortest = configuration.origins.map(\.balancing.resolveInterval).min() ?? .seconds(30)
        let isComplete = servers.unknown(configuration).isEmpty
        let pause = min(lookUpPace.next(isComplete: isComplete), shortest)
        control.asyncAfter(deadline: .now() + .milliseconds(Int(pause.milliseconds))) { [self] in
            guard number == lookUpNumber, !isDraining else { return }
            lookUp(number)
        }
    }

    private func lookUp(_ number: Int) {
        let (wanted, resolver) = (configuration.origins.flatMap(\.addresses), resolver)
        naming.async { [self] in
            let findings = resolver.addresses(of: wanted)
            control.async { self.lookedUp(findings, number) }
        }
    }

    private func lookedUp(_ findings: [ServerAddress: Resolver.Finding], _ number: Int) {
        // A reload that came meanwhile has looked up its own.
        guard number == lookUpNumber, !isDraining else { return }
        let changes = servers.take(findings)
        for change in changes { tell(change) }
        let moved = changes.filter { $0.kind != .lost }.map(\.server)
        if !moved.isEmpty {
            let places = configuration.origins.indices.filter { place in
                configuration.origins[place].addresses.contains(where: moved.contains)
            }
            replaceServers(of: places)
        }
        scheduleLookUp()
    }

    /// Serves these origins by what is known of their servers now.
    func replaceServers(of places: [Int]) {
        let settings = ProxySettings(configuration, servers, devices, originCertificates, book)
        origins = settings.origins
        book.keep(origins)
        for unit in units { unit.replaceServers(settings, of: Set(places)) }
    }

    private func tell(_ change: ServerBook.Change) {
        let name = change.server.text
        let count = servers.addresses[change.server]?.count ?? 0
        let addresses = "\(count) address\(count == 1 ? "" : "es")"
        switch change.kind {
        case .found: log.notice("the server \(name) is known now, with \(addresses)")
        case .moved: log.notice("the server \(name) has moved; it has \(addresses)")
        case .lost:
            log.warning(
                """
                the server \(name) has no address any more; the last ones stay in use; next: look \
                at its DNS entry
                """
            )
        }
    }
}
