import Encodings

/// The files that `portcullis init` writes: a configuration that starts, with comments about the
/// next changes.
package struct FirstConfiguration {
    /// The operator's input.
    package struct Options {
        /// The API: `host:port`, `http://host:port`, `https://host` or `unix:/path`.
        package var origin: String
        package var listen = "127.0.0.1:8080"
        /// The address for Prometheus.
        package var metrics = "127.0.0.1:9901"
        /// The pattern of the paths that the first rule is for.
        package var path = "/**"
        /// The App ID; `nil` for a gateway that forwards and verifies nothing yet.
        package var app: String?
        /// A PEM file of an authority that is trusted instead of Apple's: for trials.
        package var testRoot: String?
        /// The folder that the files are for, as an absolute path.
        package var folder: String

        package init(origin: String, folder: String) {
            self.origin = origin
            self.folder = folder
        }
    }

    /// A file, by its path in the folder.
    package struct File: Equatable {
        package let path: String
        package let text: String
    }

    /// The names of the files.
    package static let main = "portcullis.yaml"
    private static let rule = "rules/10-first.yaml"
    private static let schema = "portcullis.schema.json"

    package let files: [File]
    private let folder: String

    package init(_ options: Options) {
        folder = options.folder
        files = [
            File(path: Self.main, text: Self.main(options)),
            File(path: Self.rule, text: Self.rule(options)),
            File(path: Self.schema, text: ConfigurationSchema().json.pretty + "\n"),
        ]
    }

    /// The problems that `check` would report; nothing is written for that.
    package func problems(_ disk: some ConfigurationFiles = DiskFiles()) -> [Problem] {
        let files = Unwritten(files: files, folder: folder, disk: disk)
        return ConfigurationLoader.load("\(folder)/\(Self.main)", files: files).errors
    }

    /// The command line's word for a key's value; the key itself where there is none.
    package static func word(for keyPath: String) -> String {
        let words = [
            ("apps[0].id", "--app"), ("apps[0].test_root", "--test-root"),
            ("listen[0]", "--listen"), ("admin[1]", "--metrics"), ("first.match.path", "--path"),
            ("origins.", "<origin>"),
        ]
        return words.first { keyPath.hasPrefix($0.0) }?.1 ?? keyPath
    }

    // MARK: Texts

    private static func main(_ options: Options) -> String {
        let isTLS = options.origin.hasPrefix("https://")
        let server = quoted(server(of: options.origin))
        return """
            # yaml-language-server: $schema=\(schema)
            # Written by `portcullis init`. `portcullis check` says what it means, and what is
            # wrong with it. A gateway that runs reads it again after `kill -HUP`. Relative paths
            # count from this folder.

            # Where clients connect. For TLS, with files of your own beside this one:
            #   - { address: 0.0.0.0:8443, tls: { certificate: fullchain.pem, key: key.pem } }
            listen:
              - address: \(quoted(options.listen))

            # For operators alone. Commands such as `portcullis rollout` use the socket: a user who
            # may connect to it may change rollouts. Prometheus and a browser use the address, which
            # changes nothing; its page / is the dashboard.
            admin:
              - address: \(quoted("unix:\(options.folder)/admin.sock"))
              - { address: \(quoted(options.metrics)), serves: [probes, metrics, pages] }

            # The API. More servers share the requests. A name is looked up again and again.
            origins:
              api: { servers: [\(server)]\(isTLS ? ", tls: verify" : "") }

            \(apps(options))

            # Requests that no rule matches go to the API unverified. With `mode: deny`, and no
            # origin, they are answered 404.
            default: { origin: api, mode: off }

            # A folder: its *.yaml files are read in the order of their names.
            rules: rules

            """
    }

    private static func apps(_ options: Options) -> String {
        guard let app = options.app else {
            return """
                # Without an app nothing is verified yet. Remove the number signs, and write your
                # team's prefix, a dot and the bundle identifier. Then write `mode: observe` in
                # \(rule).
                # apps:
                #   - { id: ABCDE12345.com.example.app, environments: [production] }

                \(store)
                """
        }
        let trust =
            options.testRoot.map { "environments: [test]\n    test_root: \(quoted($0))" }
            ?? "environments: [production]   # development: apps that Xcode has installed"
        return """
            # Who may pass: copies of this app that Apple vouches for.
            apps:
              - id: \(quoted(app))
                \(trust)

            \(store)
            """
    }

    /// Also without an app: a store can't be added later without a restart.
    private static let store = """
        # The keys of devices, in a file that only the gateway may read.
        store: { sqlite: portcullis.db }
        """

    private static func rule(_ options: Options) -> String {
        let names = options.testRoot == nil ? nil : options.app
        let apps = names.map { app in
            "\n  apps: [\(quoted(app))]   # test apps pass only where a rule names them"
        }
        let mode =
            options.app == nil
            ? "off       # verifies nothing; then observe"
            : "observe   # verifies, tells the API and the log, refuses nothing"
        return """
            # yaml-language-server: $schema=../\(schema)
            # The first rule that matches decides. Metrics, the log and commands name a rule by its
            # id.
            - id: first
              match: { path: \(quoted(options.path)) }   # also host and method
              origin: api
              mode: \(mode)\(apps ?? "")
            # Once clients sign their requests, and `observe` has shown which it would refuse: write
            # mode: enforce with rollout: { percent: 1% }, or run, in the folder above this one:
            # portcullis rollout --config portcullis.yaml first 1%

            """
    }

    /// The server in the form of `servers`.
    private static func server(of origin: String) -> String {
        for (scheme, port) in [("http://", "80"), ("https://", "443")]
        where origin.hasPrefix(scheme) {
            var rest = String(origin.dropFirst(scheme.count))
            if rest.hasSuffix("/") { rest.removeLast() }
            let hasPort = ServerAddress(text: rest, allowsPortZero: false) != nil
            return hasPort ? rest : "\(rest):\(port)"
        }
        return origin
    }

    /// A text as YAML: unquoted where it can't be read as anything else.
    private static func quoted(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { $0.isAlphanumeric || ".-_/:".utf8.contains($0) }
        if isPlain, !text.hasSuffix(":"), !text.hasPrefix("-"), !text.hasPrefix(":") { return text }
        // A string of JSON is also one of YAML 1.2.
        var bytes: [UInt8] = []
        bytes.appendJSONString(text)
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// Files that are not written yet, over those of the disk.
private struct Unwritten<Disk: ConfigurationFiles>: ConfigurationFiles {
    let files: [FirstConfiguration.File]
    let folder: String
    let disk: Disk

    private func file(_ path: String) -> FirstConfiguration.File? {
        files.first { "\(folder)/\($0.path)" == path }
    }

    func contents(of path: String, limit: Int) throws(FileFault) -> [UInt8] {
        guard let file = file(path) else { return try disk.contents(of: path, limit: limit) }
        return Array(file.text.utf8)
    }

    func names(in folder: String) throws(FileFault) -> [String] {
        let names = files.compactMap { file -> String? in
            let path = "\(self.folder)/\(file.path)"
            guard FilePath.folder(of: path) == folder else { return nil }
            return String(path.dropFirst(folder.count + 1))
        }
        return names.isEmpty ? try disk.names(in: folder) : names
    }

    func permissions(of path: String) throws(FileFault) -> UInt16 {
        file(path) == nil ? try disk.permissions(of: path) : 0o644
    }

    func device(of path: String) throws(FileFault) -> UInt64 {
        // The folder may not exist yet; nothing here depends on where it will be.
        0
    }
}
