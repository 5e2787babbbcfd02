import ArgumentParser
import Configuration

/// A configuration that a command needs and can't do without.
enum LoadedFile {
    /// Loads it; prints every problem and exits 1 when it is invalid.
    static func configuration(_ file: String) throws -> GatewayConfiguration {
        let loaded = ConfigurationLoader.load(file)
        for problem in loaded.problems { StandardError.write(problem.text) }
        guard let configuration = loaded.configuration else {
            StandardError.write("\(file): refused; `portcullis check \(file)` says more")
            throw ExitCode(1)
        }
        return configuration
    }
}
