import ArgumentParser
import Cryptography
import DeviceKey
import Encodings
import KeyStore

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
        guard StandardOutput.write(json.text + "\n") else { throw ExitCode(1) }
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
