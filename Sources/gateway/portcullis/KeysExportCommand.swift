import ArgumentParser
import KeyCatalog

struct KeysExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write keys as JSON lines, as `keys import` reads them."
    )

    @OptionGroup var store: KeyStoreOptions
    @OptionGroup var filter: KeyFilterOptions

    func run() throws {
        let (keys, _) = try store.administration()
        _ = try keys.export(filter.filter) { octets in
            guard StandardOutput.write(String(decoding: octets, as: UTF8.self)) else {
                throw ExitCode(1)
            }
        }
    }
}
