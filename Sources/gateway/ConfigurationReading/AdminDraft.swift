import Rules
package import Services

/// The section `admin` in its file's words.
struct AdminDraft {
    private static let keys = ["address", "calls", "token_file", "hosts"]

    let address: Located<ServerAddress>?
    let calls: Located<AdminCalls>?
    private let tokenFile: Located<String>?
    /// In lower case.
    let hosts: [String]

    /// - root: the whole configuration.
    init(_ root: MappingReader) {
        guard let reader = root.inner("admin", keys: Self.keys) else {
            (address, calls, tokenFile, hosts) = (nil, nil, nil, [])
            return
        }
        reader.require("address", use: "address: 127.0.0.1:9901 or unix:/path")
        address = reader.listenAddress()
        calls = reader.word("calls")
        tokenFile = reader.filePath("token_file", use: "a file's path")
        let names = reader.list("hosts", of: "host names, without a port") { text -> String? in
            ServerAddress.isName(text[...]) ? text.lowercased() : nil
        }
        hosts = names?.map(\.value) ?? []
    }

    /// The token of operators; `nil` for none.
    func token(_ files: NamedFiles) -> OperatorToken? {
        guard let file = tokenFile, let address else { return nil }
        let log = files.log
        if address.value.isUnix {
            let found = "it beside a Unix socket, whose file says who may call"
            log.error(file, found: found, use: "none")
            return nil
        }
        if calls?.value == .any {
            let found = "it beside admin.calls: any, by which everybody may call"
            log.error(file, found: found, use: "one of the two")
            return nil
        }
        if !address.value.isLocal {
            log.error(
                file,
                found: "it beside \(address.value.text), to which the token would go in the clear",
                use: "a loopback address, which is reached from elsewhere by ssh -L"
            )
            return nil
        }
        return read(file, files)
    }

    private func read(_ file: Located<String>, _ files: NamedFiles) -> OperatorToken? {
        let path = files.path(of: file)
        let lengths = OperatorToken.lengths
        let use =
            "a file with one line of \(lengths.lowerBound)…\(lengths.upperBound) visible "
            + "characters: (umask 077; openssl rand -hex 32 > \(path))"
        let bytes = files.secret(file, limit: lengths.upperBound + 1, use: use)
        guard let bytes else { return nil }
        if let token = OperatorToken(file: bytes) { return token }
        files.log.error(file, found: "no token in \(path)", use: use)
        return nil
    }
}

/// Where commands ask a running gateway.
package struct AdminPlace: Sendable {
    package let address: ServerAddress
    /// What callers show; `nil` where they need none.
    package let token: OperatorToken?
}

extension GatewayConfiguration {
    /// Where commands ask its gateway; `nil` without an admin listener.
    package var adminPlace: AdminPlace? {
        admin.map { AdminPlace(address: $0, token: operatorToken) }
    }
}

/// The addresses at which the admin listener serves calls that change something.
package enum AdminCalls: String, CaseIterable, Sendable {
    /// On a Unix socket, whose file permissions decide who may connect. On other addresses only
    /// with the token of `admin.token_file`.
    case unix
    /// On any address: all who reach it may call.
    case any
}

/// The file's section about probes on the public listeners: `probes`.
struct ProbeDraft {
    private let live: Located<String>?
    private let ready: Located<String>?

    var paths: ProbePaths { ProbePaths(live: live?.value, ready: ready?.value) }

    init(_ node: SourceNode?, log: ProblemLog) {
        let keys = ["live", "ready"]
        guard let node, let reader = MappingReader(node, "probes", keys: keys, log: log) else {
            (live, ready) = (nil, nil)
            return
        }
        func path(_ key: String) -> Located<String>? {
            let found = reader.value(
                key,
                use: "off | a path of plain segments without a slash at its end, as /livez",
                words: ["off"]
            ) { (text) -> String?? in
                text == "off" ? .some(nil) : ConfigurationDraft.plainPath(text).map(Optional.some)
            }
            guard let found, let path = found.value else { return nil }
            return Located(value: path, place: found.place, keyPath: found.keyPath)
        }
        (live, ready) = (path("live"), path("ready"))
    }

    /// A probe must not silently take a path of the API.
    func validate(endpoints: String, _ rules: RuleSet, log: ProblemLog) {
        if let live, let ready, live.value == ready.value {
            log.error(
                ready,
                found: "\(ready.value), which is probes.live already",
                use: "a path of its own"
            )
        }
        for path in [live, ready].compactMap(\.self) {
            if path.value == endpoints || path.value.hasPrefix(endpoints + "/") {
                log.error(
                    path,
                    found: "\(path.value), which is among the gateway's own endpoints",
                    use: "a path outside \(endpoints)"
                )
            }
            warnOfRules(at: path, rules, log)
        }
    }

    /// The default rule takes only requests without a rule of their own, so it loses none that a
    /// rule was written for.
    private func warnOfRules(at path: Located<String>, _ rules: RuleSet, _ log: ProblemLog) {
        let segments = path.value.dropFirst().split(separator: "/").map { Array($0.utf8) }
        let matching = rules.rules.dropLast().filter { $0.match.path.matches(segments) }
        // A wildcard before it may be for other hosts or methods.
        let named = matching.first { $0.match.path.text == path.value }
        guard let rule = named ?? matching.first else { return }
        if named != nil {
            log.error(
                path,
                found: "\(path.value), the path of rule \(rule.id), which no request would reach",
                use: "a path that the API does not have"
            )
        } else {
            log.warning(
                path,
                found: "\(path.value), which rule \(rule.id) (\(rule.match.text)) would forward",
                use: "a path that the API does not have, since the gateway answers it itself"
            )
        }
    }
}
