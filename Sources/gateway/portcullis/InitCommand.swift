import ArgumentParser
import ConfigurationReading
import Foundation

struct InitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Write a first configuration for an API, one that starts.",
        discussion: """
            Nothing is overwritten. Without --app the gateway forwards and verifies nothing; with \
            it, the first rule observes.
            """
    )

    @Argument(help: "The API: host:port, http://host:port, https://host or unix:/path.")
    var origin: String

    @Option(help: "The app that may pass, by its App ID: prefix, dot, bundle identifier.")
    var app: String?

    @Option(help: "The paths that the first rule is for, such as /v1/orders or /v1/**.")
    var path = "/**"

    @Option(help: "Where clients connect.")
    var listen = "127.0.0.1:8080"

    @Option(help: "Where Prometheus and the dashboard's browser connect.")
    var metrics = "127.0.0.1:9901"

    @Option(help: "The folder to write into; it is made if there is none.")
    var folder = "portcullis"

    @Option(help: "For trials: a PEM file of an authority that is trusted instead of Apple's.")
    var testRoot: String?

    func run() throws {
        let folder = URL(filePath: folder).standardizedFileURL.path(percentEncoded: false)
        let place = folder.count > 1 && folder.hasSuffix("/") ? String(folder.dropLast()) : folder
        var options = FirstConfiguration.Options(origin: origin, folder: place)
        options.app = app
        options.path = path
        options.listen = listen
        options.metrics = metrics
        options.testRoot = testRoot.map {
            URL(filePath: $0).standardizedFileURL.path(percentEncoded: false)
        }
        let first = FirstConfiguration(options)
        let problems = first.problems()
        guard problems.isEmpty else {
            // The file does not exist yet, so a problem can't name a line of it.
            for problem in problems {
                let word = FirstConfiguration.word(for: problem.keyPath)
                StandardError.write("\(word): found \(problem.found); use \(problem.use)")
            }
            throw refused("what was asked for can't be configured")
        }
        try write(first.files, into: place)
        let file = "\(self.folder)/\(FirstConfiguration.main)"
        let lines =
            first.files.map { "wrote \(self.folder)/\($0.path)" }
            + ["next: portcullis check \(file)", "next: portcullis serve \(file)"]
        StandardOutput.write(lines.joined(separator: "\n") + "\n")
    }

    private func write(_ files: [FirstConfiguration.File], into folder: String) throws {
        let disk = FileManager.default
        let paths = files.map { "\(folder)/\($0.path)" }
        for path in paths where disk.fileExists(atPath: path) {
            throw refused("\(path) exists; choose another --folder, or move it away")
        }
        var written: [String] = []
        do {
            for (file, path) in zip(files, paths) {
                let url = URL(filePath: path)
                try disk.createDirectory(
                    at: url.deletingLastPathComponent(),
                    withIntermediateDirectories: true
                )
                try Self.create(url, file.text)
                written.append(path)
            }
        } catch {
            // All of them or none: the next try finds what is there, and overwrites nothing.
            for path in written { try? disk.removeItem(atPath: path) }
            throw refused("\(folder) can't be written: \(error.localizedDescription)")
        }
    }

    /// Makes a file; where the disk is full, none of it is left.
    private static func create(_ file: URL, _ text: String) throws {
        do {
            try Data(text.utf8).write(to: file, options: .withoutOverwriting)
        } catch let error as CocoaError where error.code == .fileWriteFileExists {
            // It was made since, by another program.
            throw error
        } catch {
            try? FileManager.default.removeItem(at: file)
            throw error
        }
    }

    private func refused(_ why: String) -> ExitStatus {
        StandardError.write("portcullis: nothing was written: \(why)")
        return .no
    }
}
