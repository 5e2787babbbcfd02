import AppAttest
import ArgumentParser
import Cryptography
import KeyCatalog
import KeyStore

struct KeysListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: """
            One line a key: key id, app, environment, status, counter, last use; with --risk also \
            the risk metric and when it was found.
            """
    )

    @OptionGroup var store: KeyStoreOptions
    @OptionGroup var filter: KeyFilterOptions

    /// Bytes that are written at a time.
    private static let pieceBytes = 64 << 10

    func run() throws {
        let (keys, _) = try store.administration()
        var lines = ""
        try keys.forEach(filter.filter) { record in
            let status = if case .active = record.status { "active" } else { "revoked" }
            let used = record.lastUsedAt.map { UnixTime(seconds: $0).iso8601 } ?? "never"
            var columns = [
                record.keyID.base64, record.appID, record.environment.rawValue, status,
                String(record.counters.highest.rawValue), used,
            ]
            if filter.risk != nil { columns += Self.risk(record.receiptState) }
            lines += columns.joined(separator: "\t") + "\n"
            if lines.utf8.count >= Self.pieceBytes { try write(&lines) }
        }
        try write(&lines)
    }

    private static func risk(_ state: ReceiptState) -> [String] {
        [
            state.riskMetric.map(String.init) ?? "unknown",
            state.metricAt.map { UnixTime(seconds: $0).iso8601 } ?? "never",
        ]
    }

    private func write(_ lines: inout String) throws {
        guard StandardOutput.write(lines) else { throw ExitCode(1) }
        lines = ""
    }
}
