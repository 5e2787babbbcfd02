import Challenges
import ConfigurationReading
import Dispatch
import Glibc
import KeyStore

// The secrets that all gateways of a database share. Each reads them often enough to have a new one
// before any of them signs with it.
extension GatewayServer {
    private static let secretsInterval = DispatchTimeInterval.seconds(10)

    func startReadingSecrets() {
        guard case .postgresql = configuration.store else { return }
        let queue = DispatchQueue(label: "portcullis.secrets", qos: .utility)
        // A start without the database has none.
        readSecrets(queue, in: .seconds(1))
    }

    private func readSecrets(_ queue: DispatchQueue, in interval: DispatchTimeInterval) {
        let lifetime = configuration.challenges.lifetimeMax
        queue.asyncAfter(deadline: .now() + interval) { [weak self] in
            guard let self else { return }
            // When the store can't be read, that is told where its changes are read. Until then
            // the secrets that are known go on.
            let secrets = try? keys.sharedSecrets(now: Int64(time(nil)), lifetime: lifetime)
            issuer.take(secrets.flatMap(\.self) ?? [])
            control.async { [self] in
                guard !isEnding else { return }
                readSecrets(queue, in: secrets == nil ? .seconds(1) : Self.secretsInterval)
            }
        }
    }
}
