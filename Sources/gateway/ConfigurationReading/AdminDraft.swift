import Rules
package import Services

/// A listener of the section `admin` in its file's words.
struct AdminDraft: Declared {
    static let keys = Keys<Self> {
        Key("address", into: \.address) { ValueForm.listening.located($0, $1) }
            .means("Where operators connect. A Unix socket's file says who may.")
            .mandatory("address: 127.0.0.1:9901 or unix:/path")
        Key("serves", into: \.serves) { reader, key in
            let words = AdminService.allCases.map(\.rawValue)
            return reader.list(key, of: words.joined(separator: ", "), words: words) { text in
                AdminService(rawValue: text)
            }
        }
        .means("The kinds of paths that the listener has. Without it, all that may be served.")
        Key("calls", into: \.calls) { $0.word($1) }
            .means("Where calls that change something are served. Without it, unix.")
        Key("token_file", into: \.tokenFile) { $0.filePath($1, use: "a file's path") }
            .means("The token by which clients of a loopback address may make calls.")
        Key("read_token_file", into: \.readTokenFile) { $0.filePath($1, use: "a file's path") }
            .means("In its place: a token for operators who only read.")
        Key("hosts", \.hosts, hosts)
            .means("Names by which the listener may be asked, without a port.")
    }

    private static let hosts = ValueForm<[String]>.texts("host names, without a port") { text in
        ServerAddress.isName(text[...]) ? text.lowercased() : nil
    }

    private let keyPath: String
    private(set) var address: Located<ServerAddress>?
    private var serves: [Located<AdminService>]?
    private var calls: Located<AdminCalls>?
    private var tokenFile: Located<String>?
    private var readTokenFile: Located<String>?
    /// In lower case.
    private var hosts: [String] = []

    /// The listeners of the file, in their order. One may stand without a list.
    ///
    /// - root: the whole configuration.
    static func all(_ root: MappingReader) -> [AdminDraft] {
        guard let node = root.node("admin") else { return [] }
        guard case .list = node.content else {
            return [AdminDraft(node, root.path("admin"), root.log)].compactMap(\.self)
        }
        let nodes = root.list("admin", of: "admin listeners: - address: unix:/path") ?? []
        if let extra = nodes.dropFirst(AdminListener.countMax).first {
            root.log.error(
                extra.node.place,
                extra.keyPath,
                found: "\(nodes.count) admin listeners",
                use: "\(AdminListener.countMax) at most"
            )
        }
        return nodes.compactMap { AdminDraft($0, $1, root.log) }
    }

    private init?(_ node: SourceNode, _ keyPath: String, _ log: ProblemLog) {
        let names = Self.keys.names
        guard let reader = MappingReader(node, keyPath, keys: names, log: log) else { return nil }
        self.keyPath = keyPath
        Self.keys.read(reader, into: &self)
    }

    /// The listener; `nil` without an address. Problems are reported.
    func listener(_ files: NamedFiles) -> AdminListener? {
        guard let address else { return nil }
        let mayServe = mayServeCalls(at: address.value)
        let servesCalls = serves?.contains { $0.value == .calls } ?? mayServe
        var kinds: Set<OperatorGate.Access> = [.open, .metrics, .page]
        if let serves { kinds = serves.reduce(into: []) { $0.formUnion($1.value.kinds) } }
        if servesCalls { kinds.formUnion(AdminService.calls.kinds) }
        if readTokenFile != nil { kinds.insert(.lookup) }
        return AdminListener(
            keyPath: keyPath,
            address: address.value,
            serves: kinds,
            hosts: hosts,
            asksForToken: tokenFile != nil || readTokenFile != nil,
            token: hasFault(servesCalls: servesCalls, mayServe: mayServe, files.log)
                ? nil : (tokenFile ?? readTokenFile).flatMap { read($0, files) }
        )
    }

    /// Whether an address or a token says who may call.
    private func mayServeCalls(at address: ServerAddress) -> Bool {
        guard readTokenFile == nil else { return false }
        return address.isUnix || tokenFile != nil || calls?.value == .any
    }

    /// Reports keys that don't belong together.
    private func hasFault(servesCalls: Bool, mayServe: Bool, _ log: ProblemLog) -> Bool {
        guard let address else { return true }
        if let readTokenFile, tokenFile != nil {
            log.error(
                readTokenFile,
                found: "it beside token_file",
                use: "another admin listener for it, with an address of its own"
            )
            return true
        }
        if let word = serves?.first(where: { $0.value == .calls }), !mayServe {
            let rights =
                readTokenFile == nil
                ? "where nothing says who may call"
                : "beside read_token_file, whose holders change nothing"
            log.error(
                word,
                found: "calls at \(address.value.text), \(rights)",
                use: "token_file beside it, or address: unix:/path, whose file says who may call"
            )
            return true
        }
        if let tokenFile, !servesCalls {
            log.error(
                tokenFile,
                found: "it beside serves without calls",
                use: "calls in serves, or read_token_file for operators who only read"
            )
            return true
        }
        if let calls, calls.value == .any, !servesCalls {
            log.error(calls, found: "any beside serves without calls", use: "calls in serves")
            return true
        }
        return hasTokenFault(at: address.value, log)
    }

    /// Reports a token that would protect nothing.
    private func hasTokenFault(at address: ServerAddress, _ log: ProblemLog) -> Bool {
        guard let file = tokenFile ?? readTokenFile else { return false }
        if address.isUnix {
            let found = "it beside a Unix socket, whose file says who may call"
            log.error(file, found: found, use: "none")
            return true
        }
        if calls?.value == .any {
            let found = "it beside \(keyPath).calls: any, by which everybody may call"
            log.error(file, found: found, use: "one of the two")
            return true
        }
        guard !address.isLocal else { return false }
        log.error(
            file,
            found: "it beside \(address.text), to which the token would go in the clear",
            use: "a loopback address, which is reached from elsewhere by ssh -L"
        )
        return true
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

    /// Whether strangers could read rules and counts, though the file does not ask for that.
    var mayTellTooMuch: Bool {
        guard let address, !address.value.isLocal else { return false }
        return serves.map { $0.contains { [.pages, .calls].contains($0.value) } } ?? true
    }
}

/// A listener for operators.
package struct AdminListener: Sendable {
    /// The most of them. Each has an event loop of its own.
    static let countMax = 8

    /// `admin`, or `admin[0]`.
    package let keyPath: String
    /// `address`.
    package let address: ServerAddress
    /// `serves`: default all, except for calls where nothing says who may call.
    package let serves: Set<OperatorGate.Access>
    /// `hosts`: names under which it serves beside `localhost`, in lower case. Default none.
    package let hosts: [String]
    /// Whether callers have to show a token.
    package let asksForToken: Bool
    /// What callers show, from `token_file` or `read_token_file`; `nil` where they need none, and
    /// where the file can't be read.
    package let token: OperatorToken?

    /// The kinds as the file says them: `probes, metrics`.
    package var servesText: String {
        let words = AdminService.allCases.filter { $0.kinds.isSubset(of: serves) }.map(\.rawValue)
        let lookups = serves.contains(.lookup) && !serves.contains(.call) ? ["lookups"] : []
        return (words + lookups).joined(separator: ", ")
    }

    /// All but the token, which a reload reads again.
    struct Fixed: Equatable, Sendable {
        let address: ServerAddress
        let serves: Set<OperatorGate.Access>
        let hosts: [String]
        let asksForToken: Bool
    }

    var fixed: Fixed {
        Fixed(address: address, serves: serves, hosts: hosts, asksForToken: asksForToken)
    }
}

/// What an admin listener serves, in the words of `serves`.
package enum AdminService: String, CaseIterable, Sendable {
    case probes, metrics, pages, calls

    var kinds: Set<OperatorGate.Access> {
        switch self {
        case .probes: [.open]
        case .metrics: [.metrics]
        case .pages: [.page]
        case .calls: [.lookup, .call]
        }
    }
}

/// The addresses at which an admin listener serves calls that change something.
package enum AdminCalls: String, CaseIterable, Sendable {
    /// On a Unix socket, whose file permissions decide who may connect. On other addresses only
    /// with the token of `token_file`.
    case unix
    /// On any address: all who reach it may call.
    case any
}

extension GatewayConfiguration {
    /// Says why no command reaches the gateway; `nil` where one does.
    package var commandProblem: Problem? {
        guard !settings.admin.contains(where: { $0.serves.contains(.call) }) else { return nil }
        let found =
            settings.admin.isEmpty
            ? "no admin listener, so no command reaches the gateway"
            : "no admin listener that serves calls, so `portcullis rollout`, `why`, `origins` and "
                + "`upgrade` can't reach the gateway"
        return Problem(
            .warning,
            place(of: "admin"),
            "admin",
            found: found,
            use: "one more listener for them: - address: unix:/run/portcullis/admin.sock"
        )
    }
}
