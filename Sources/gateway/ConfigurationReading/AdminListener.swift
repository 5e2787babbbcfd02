import Rules
package import Services

/// A listener for operators: an element of the section `admin`.
package struct AdminListener: Sendable, Declared {
    /// The most of them. Each has an event loop of its own.
    static let countMax = 8

    /// `admin`, or `admin[0]`.
    package let keyPath: String
    package private(set) var address = ServerAddress.unix("")
    /// Names under which it serves beside `localhost`, in lower case.
    package private(set) var hosts: [String] = []
    /// What callers show, from `token_file` or `read_token_file`; `nil` where they need none, and
    /// where the file can't be read.
    package private(set) var token: OperatorToken?
    private var services: [AdminService]?
    private var calls = AdminCalls.unix
    private var tokenFile: String?
    private var readTokenFile: String?

    private init(keyPath: String) { self.keyPath = keyPath }

    /// A listener of a running gateway that a command names. The gateway knows what it serves.
    init(asked address: ServerAddress, tokenFile: String?) {
        keyPath = "admin"
        (self.address, self.tokenFile) = (address, tokenFile)
        if tokenFile == nil { calls = .any }
    }

    package static let keys = Keys<Self> {
        Key("address", \.address, .listening)
            .means("Where operators connect. A Unix socket's file says who may.")
            .mandatory("address: 127.0.0.1:9901 or unix:/path")
        Key("serves", orNone: \.services, .words())
            .means(
                "The kinds of paths that the listener has.",
                otherwise: "all that may be served"
            )
        Key("calls", \.calls, .word).means("Where calls that change something are served.")
        Key("token_file", orNone: \.tokenFile, .file("a file's path"))
            .means("The token by which clients of a loopback address may make calls.")
        Key("read_token_file", orNone: \.readTokenFile, .file("a file's path"))
            .means("In its place: a token for operators who only read.")
        Key("hosts", \.hosts, hostNames)
            .means("Names by which the listener may be asked, without a port.")
    }

    private static let hostNames = ValueForm<[String]>.texts(
        "host names, without a port",
        text: \.self
    ) { ServerAddress.isName($0[...]) ? $0.lowercased() : nil }.takingVariables

    /// All listeners, in the order of the file. One may stand without a list.
    static let form = ValueForm<[AdminListener]>(
        { reader, key in
            guard let node = reader.node(key) else { return nil }
            guard case .list(let nodes) = node.content else {
                let one = ValueForm<AdminListener>.mapping { AdminListener(keyPath: $0) }
                return one.located(reader, key)?.map { [$0] }
            }
            let use = "admin listeners: - address: unix:/path"
            let all = reader.list(key, of: use)?.compactMap { node, keyPath -> AdminListener? in
                let listener = AdminListener(keyPath: keyPath)
                let stated = Stated(node, at: keyPath, over: listener, reader.log)
                return stated.flatMap { $0.isComplete ? $0.value : nil }
            }
            if let extra = nodes.dropFirst(countMax).first {
                reader.log.error(
                    extra.place,
                    "\(reader.path(key))[\(countMax)]",
                    found: "\(nodes.count) admin listeners",
                    use: "\(countMax) at most"
                )
            }
            return all.map { reader.located(key, $0) }
        },
        // A reload reads the files of tokens again.
        changes: { old, new, keyPath in
            old.map(\.fixed) == new.map(\.fixed) ? [] : [SettingChange(keyPath: keyPath)]
        }
    )

    /// All but the token, which a reload reads again.
    private var fixed: [String] { [address.text, servesText, "\(asksForToken)"] + hosts }

    package var serves: Set<OperatorGate.Access> {
        var kinds: Set<OperatorGate.Access> = [.open, .metrics, .page]
        if let services { kinds = services.reduce(into: []) { $0.formUnion($1.kinds) } }
        if servesCalls { kinds.formUnion(AdminService.calls.kinds) }
        if readTokenFile != nil { kinds.insert(.lookup) }
        return kinds
    }

    /// Whether callers have to show a token.
    package var asksForToken: Bool { tokenFile != nil || readTokenFile != nil }

    /// The kinds as the file says them: `probes, metrics`.
    package var servesText: String {
        let words = AdminService.allCases.filter { $0.kinds.isSubset(of: serves) }.map(\.rawValue)
        let lookups = serves.contains(.lookup) && !serves.contains(.call) ? ["lookups"] : []
        return (words + lookups).joined(separator: ", ")
    }

    /// Whether an address or a token says who may call.
    private var mayServeCalls: Bool {
        guard readTokenFile == nil else { return false }
        return address.isUnix || tokenFile != nil || calls == .any
    }

    private var servesCalls: Bool { services?.contains(.calls) ?? mayServeCalls }

    /// Whether strangers could read rules and counts, though the file does not ask for that.
    var mayTellTooMuch: Bool {
        guard !address.isLocal else { return false }
        return services.map { $0.contains(.pages) || $0.contains(.calls) } ?? true
    }

    /// The listener with its token read. Problems are reported.
    func readingToken(_ files: NamedFiles) -> AdminListener {
        let log = files.log
        let own = tokenFile.map { log.located("\(keyPath).token_file", $0) }
        let reading = readTokenFile.map { log.located("\(keyPath).read_token_file", $0) }
        let isAssumed = log.assumes(valueAt: "\(keyPath).address")
        if !isAssumed, let fault = fault(own, reading: reading, log) {
            log.error(fault.part, found: fault.found, use: fault.use)
            return self
        }
        var listener = self
        listener.token = (own ?? reading).flatMap { Self.token($0, files) }
        return listener
    }

    /// What does not belong together.
    private func fault(
        _ own: Located<String>?,
        reading: Located<String>?,
        _ log: ProblemLog
    ) -> (part: Located<String>, found: String, use: String)? {
        if let reading, own != nil {
            let use = "another admin listener for it, with an address of its own"
            return (reading, "it beside token_file", use)
        }
        if let place = services?.firstIndex(of: .calls), !mayServeCalls {
            let rights =
                reading == nil
                ? "where nothing says who may call"
                : "beside read_token_file, whose holders change nothing"
            return (
                log.located("\(keyPath).serves[\(place)]", ""),
                "calls at \(address.text), \(rights)",
                "token_file beside it, or address: unix:/path, whose file says who may call"
            )
        }
        if let own, !servesCalls {
            let use = "calls in serves, or read_token_file for operators who only read"
            return (own, "it beside serves without calls", use)
        }
        let word = log.located("\(keyPath).calls", "")
        if calls == .any, !servesCalls {
            return (word, "any beside serves without calls", "calls in serves")
        }
        // A token that would protect nothing.
        guard let file = own ?? reading else { return nil }
        if address.isUnix {
            return (file, "it beside a Unix socket, whose file says who may call", "none")
        }
        if calls == .any {
            let found = "it beside \(word.keyPath): any, by which everybody may call"
            return (file, found, "one of the two")
        }
        guard !address.isLocal else { return nil }
        let use = "a loopback address, which is reached from elsewhere by ssh -L"
        return (file, "it beside \(address.text), to which the token would go in the clear", use)
    }

    private static func token(_ file: Located<String>, _ files: NamedFiles) -> OperatorToken? {
        let path = files.path(of: file)
        let lengths = OperatorToken.lengths
        let use =
            "a file with one line of \(lengths.lowerBound)…\(lengths.upperBound) visible "
            + "characters: (umask 077; openssl rand -hex 32 > \(path))"
        let bytes = files.secret(file, limit: lengths.upperBound + 1, use: use, .line)
        guard let bytes else { return nil }
        if let token = OperatorToken(file: bytes) { return token }
        files.log.error(file, found: "no token in \(path)", use: use)
        return nil
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
