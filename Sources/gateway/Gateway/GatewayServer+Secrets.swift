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
        readSecrets(DispatchQueue(label: "portcullis.secrets", qos: .utility))
    }

    private func readSecrets(_ queue: DispatchQueue) {
        let lifetime = configuration.challenges.lifetimeMax
        queue.asyncAfter(deadline: .now() + Self.secretsInterval) { [weak self] in
            guard let self else { return }
            // When the store can't be read, that is told where its changes are read. Until then
            // the secrets that are known go on.
            let secrets = try? keys.sharedSecrets(now: Int64(time(nil)), lifetime: lifetime)
            issuer.take(secrets.flatMap(\.self) ?? [])
            control.async { [self] in
                if !isEnding { readSecrets(queue) }
            }
        }
    }
}
