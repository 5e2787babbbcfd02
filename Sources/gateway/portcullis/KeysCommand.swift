import AppAttest
import ArgumentParser
import ConfigurationReading
import Cryptography
import DeviceKey
import Encodings
import KeyStore
import Rules

struct KeysCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys",
        abstract: "Look at and change the stored keys, with or without a running gateway.",
        subcommands: [
            KeysListCommand.self, KeysShowCommand.self, KeysImportCommand.self,
            KeysExportCommand.self, KeysRevokeCommand.self, KeysRestoreCommand.self,
            KeysDeleteCommand.self, KeysHistoryCommand.self,
        ]
    )
}

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

    @Flag(help: "Print one JSON document, for scripts.")
    var json = false

    /// Bytes that are written at a time.
    private static let pieceBytes = 64 << 10

    func run() throws {
        let (keys, _) = try store.administration()
        guard !json else { return try writeJSON(keys) }
        var lines = ""
        try keys.forEach(filter.filter) { record in
            let status = if case .active = record.status { "active" } else { "revoked" }
            let used = record.lastUsedAt.map { UnixTime(seconds: $0).iso8601 } ?? "never"
            var columns = [
                record.keyID.base64, record.appID, record.environment.rawValue, status,
                String(record.counters.highest.rawValue), used,
            ]
            if filter.risk != nil { columns += Self.risk(record) }
            lines += columns.joined(separator: "\t") + "\n"
            if lines.utf8.count >= Self.pieceBytes { try write(&lines) }
        }
        try write(&lines)
    }

    private static func risk(_ record: KeyRecord) -> [String] {
        let (metric, second) = foundRisk(record)
        return [
            metric.map(String.init) ?? "unknown",
            second.map { UnixTime(seconds: $0).iso8601 } ?? "never",
        ]
    }

    /// The risk metric, and the second when it was found.
    private static func foundRisk(_ record: KeyRecord) -> (metric: UInt32?, at: Int64?) {
        let state = record.receiptState
        return switch record.platform {
        case .apple: (state.riskMetric, state.metricAt)
        case .android: (record.chain?.certificatesIssued, record.enrolledAt)
        }
    }

    /// The keys as a document, in pieces: a store has millions.
    private func writeJSON(_ keys: some KeyArchive) throws {
        var text = "{\"keys\":["
        var end = "\n"
        try keys.forEach(filter.filter) { record in
            var json = JSONWriter(.compact)
            json.object { Self.write(record, into: &$0) }
            text += end + json.text
            end = ",\n"
            if text.utf8.count >= Self.pieceBytes { try write(&text) }
        }
        text += "\n]}\n"
        try write(&text)
    }

    private static func write(_ record: KeyRecord, into out: inout JSONWriter) {
        let (metric, at) = foundRisk(record)
        let isActive = if case .active = record.status { true } else { false }
        out.member("key_id", record.keyID.base64)
        out.member("app_id", record.appID)
        out.member("environment", record.environment.rawValue)
        out.member("status", isActive ? "active" : "revoked")
        out.member("counter", record.counters.highest.rawValue)
        out.member("last_used_at", record.lastUsedAt.map { UnixTime(seconds: $0).iso8601 })
        out.member("risk", metric.map { JSONValue.number(Int64($0)) } ?? .null)
        out.member("risk_found_at", at.map { UnixTime(seconds: $0).iso8601 })
    }

    private func write(_ lines: inout String) throws {
        guard StandardOutput.write(lines) else { throw ExitStatus.no }
        lines = ""
    }
}

struct KeysShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "What is stored of a key, as JSON.",
        discussion: """
            Of the receipt it prints the size; --json has all of it. Of a deleted key it says when \
            it was deleted; the keyed hash that is left of it is in exports alone.
            """
    )

    @OptionGroup var store: KeyStoreOptions

    @Flag(help: "Print all of it in one line, as `keys export` writes it.")
    var json = false

    @Argument(help: "The key id in base64, or the short name that the log shows.")
    var key: String

    func validate() throws { try KeyStoreOptions.checkName(key) }

    func run() throws {
        let (archive, _) = try store.administration()
        let found = try KeyStoreOptions.key(named: key, in: archive, deleted: .included)
        guard let id = found else { throw ExitStatus.no }
        guard let record = try archive.record(id) else {
            StandardError.write("\(key) is not stored; `portcullis keys list` shows all keys")
            throw ExitStatus.no
        }
        let text = KeyLine.shown(record, json ? .compact : .indented)
        guard StandardOutput.write(text + "\n") else { throw ExitStatus.no }
    }
}

struct KeysExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write keys as JSON lines, as `keys import` reads them."
    )

    @OptionGroup var store: KeyStoreOptions
    @OptionGroup var filter: KeyFilterOptions

    func run() throws {
        let (keys, _) = try store.administration()
        _ = try keys.export(filter.filter) { bytes in
            guard StandardOutput.write(String(decoding: bytes, as: UTF8.self)) else {
                throw ExitStatus.no
            }
        }
    }
}

struct KeysHistoryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: """
            What commands have done to keys, the newest first: when, what, key id or number of \
            keys, who, why.
            """
    )

    @OptionGroup var store: KeyStoreOptions

    @Option(help: "At most so many lines.")
    var limit = 100

    @Argument(help: "Of this key alone: a key id in base64, or the short name of the log.")
    var key: String?

    func validate() throws {
        if let key { try KeyStoreOptions.checkName(key) }
        guard (1...100_000).contains(limit) else {
            throw ValidationError("--limit \(limit): use 1…100000.")
        }
    }

    func run() throws {
        let (archive, _) = try store.administration()
        var keyID: KeyID?
        if let key {
            keyID = try KeyStoreOptions.key(named: key, in: archive, deleted: .included)
            guard keyID != nil else { throw ExitStatus.no }
        }
        for change in try archive.changes(of: keyID, limit: limit) {
            let columns = [
                UnixTime(seconds: change.note.now).iso8601, change.action.rawValue,
                change.keyID?.base64 ?? Self.keys(change), change.note.actor,
                change.note.why ?? "-",
            ]
            guard StandardOutput.write(columns.joined(separator: "\t") + "\n") else {
                throw ExitStatus.no
            }
        }
    }
}

extension KeysHistoryCommand {
    /// The column of a change that has no key id.
    private static func keys(_ change: KeyChange) -> String {
        switch change.action {
        case .expired, .storeRestored: "\(change.keys) keys"
        case .revoked, .restored, .deleted: "an erased key"
        }
    }
}

struct KeysImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Take over keys that were verified elsewhere.",
        discussion: """
            Each line is a JSON object: key_id, app_id, environment, public_key (base64 of the \
            65-byte X9.62 point), counter. Nothing is imported when any line is wrong. A key that \
            is stored already keeps what it has; its counter is only raised.
            """
    )

    @OptionGroup var store: KeyStoreOptions

    @Flag(help: "Import the lines without a problem although others have one.")
    var skipProblems = false

    @Argument(help: "The file of lines; - for standard input.")
    var lines: String

    func run() throws {
        let (keys, settings) = try store.administration(creates: true)
        let apps = Set(settings.apps.map(\.id))
        let report = try keys.importLines(
            from: lines,
            apps: apps,
            skipsProblems: skipProblems,
            ChangeNoteOptions.ofErasure
        )
        for problem in report.problems { StandardError.write("\(lines): \(problem)") }
        let unlisted = report.problemCount - report.problems.count
        if unlisted > 0 { StandardError.write("\(lines): \(unlisted) more problems") }
        for warning in report.warnings { StandardError.write("warning: \(warning)") }
        guard report.isImported else {
            StandardError.write("nothing was imported; correct the lines, or use --skip-problems")
            throw ExitStatus.no
        }
        let marks = report.marks > 0 ? ", erased elsewhere: \(report.marks)" : ""
        StandardOutput.write(
            "imported: \(report.inserted), stored already: \(report.merged)\(marks)\n"
        )
        if report.problemCount > 0 { throw ExitStatus.no }
    }
}

struct ReceiptsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "receipts",
        abstract: "Look at the renewal of receipts, or ask for one.",
        subcommands: [ReceiptsStatusCommand.self, ReceiptsRenewCommand.self]
    )
}

struct ReceiptsStatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract:
            "How the receipts of all active keys stand, as JSON. `keys show` has those of one."
    )

    @OptionGroup var store: KeyStoreOptions

    func run() throws {
        let (archive, _) = try store.administration()
        let census = try archive.receiptCensus(at: UnixTime.current.seconds)
        var json = JSONWriter()
        json.object { json in
            json.member("receipts", census.receipts)
            json.member("due", census.due)
            json.member("expired", census.expired)
            json.member("untried", census.untried)
            for outcome in ReceiptState.Outcome.allCases {
                json.member(outcome.rawValue, census.outcomes[outcome] ?? 0)
            }
            json.member("risk_known", census.known)
        }
        guard StandardOutput.write(json.text + "\n") else { throw ExitStatus.no }
    }
}

struct ReceiptsRenewCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "renew",
        abstract:
            "Have receipts renewed before all others, by the gateway that runs or by the next.",
        discussion: "The outcome stands in `portcullis keys show` some seconds later."
    )

    @OptionGroup var store: KeyStoreOptions

    @OptionGroup var named: NamedKeys

    func run() throws {
        let (archive, _) = try store.administration()
        try named.forEach(in: archive) { id in
            switch try archive.askRenewal(of: id, now: UnixTime.current.seconds) {
            case .asked:
                StandardOutput.write("\(id.base64) is renewed next\n")
                return nil
            case .tooEarly(let second):
                let moment = UnixTime(seconds: second).iso8601
                return "can't be renewed before \(moment): Apple gives no newer receipt"
            case .revoked: return "is revoked; receipts of revoked keys are not renewed"
            case .withoutReceipt: return "is stored without a receipt; a new key has one"
            case .unknown: return "is not stored"
            }
        }
    }
}
