import ArgumentParser
import ConfigurationReading

/// A configuration that a command needs and can't do without.
enum LoadedFile {
    /// Loads it; prints every problem and exits 1 when it is invalid.
    static func configuration(_ file: String) throws -> GatewayConfiguration {
        let loaded = ConfigurationLoader.load(file)
        return try taken(loaded.configuration, file, loaded.problems)
    }

    /// Loads its store and its apps, in the same way.
    static func store(_ file: String) throws -> StoreSettings {
        let loaded = ConfigurationLoader.loadStore(file)
        return try taken(loaded.settings, file, loaded.problems)
    }

    private static func taken<Value>(
        _ value: Value?,
        _ file: String,
        _ problems: [Problem]
    ) throws -> Value {
        for problem in problems { StandardError.write(problem.text) }
        guard let value else {
            StandardError.write("\(file): refused; `portcullis check \(file)` says more")
            throw ExitCode(1)
        }
        return value
    }
}
