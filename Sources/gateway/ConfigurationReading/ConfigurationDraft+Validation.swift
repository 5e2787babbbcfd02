import HTTPWire
import OutboundCalls
import Proxy
import Rules
import Services

extension ConfigurationDraft {
    /// The complete configuration, if the log has no error.
    func validated(
        rules: [RuleDraft],
        files: some ConfigurationFiles,
        log: ProblemLog
    ) -> GatewayConfiguration? {
        requireSections()
        let named = NamedFiles(folder: folder, disk: files, log: reader.log)
        let listeners = validatedListeners(named)
        requireApps(rules)
        let proofs = proofs.validated(named, hasStore: reader.has("store"))
        let apps = validatedApps(named, proofs)
        validateStore(hasApps: !apps.isEmpty, files: files)
        let apple = apple?.validated(named) ?? AppleSettings()
        validateAddressSource()
        verdict.validate(origins, reader.log)
        let admin = admin.compactMap { $0.listener(named) }
        requireOwnTokens(admin)
        if let spillFolder { require(folder: spillFolder, files: files) }

        guard let fallback, let set = ruleSet(rules, apps: apps, proofs, log: log) else {
            return nil
        }
        let spills = chosenSpillFolder(files: files)
        let limits = limits(spillingTo: spills, set, files: files)
        validateHeld(zip(rules + [fallback], set.rules), limits, in: spills)
        validateStreamed(zip(rules + [fallback], set.rules))
        validateDecisions(zip(rules + [fallback], set.rules))
        let devices = DeviceRuleValidation(apps: apps, apple: apple, log: reader.log)
        devices.validateDevices(zip(rules + [fallback], set.rules))
        devices.validateRisk(zip(rules + [fallback], set.rules))
        devices.validateIntegrity(zip(rules + [fallback], set.rules))
        validatePlan(set)
        probes.validate(endpoints: endpointsPath, set, log: reader.log)
        validate(spillFolder: spills, set, files: files)
        return GatewayConfiguration(
            listeners: listeners,
            admin: admin,
            loops: loops,
            origins: origins.map { $0.validated(named) },
            apps: apps,
            store: store.place,
            storeMustExist: store.mustExist,
            expireUnused: store.expireUnused,
            challenges: challenges,
            sessions: sessions,
            enrolment: enrolment,
            apple: apple,
            verdict: verdict.validated(named),
            google: google?.validated(named) ?? GoogleSettings(),
            trustedProxies: trustedProxies.map(\.value),
            addressSource: addressSource?.value ?? .xForwardedFor,
            traces: traces,
            timeouts: timeouts,
            limits: limits,
            log: self.log,
            process: process,
            hooks: hooks,
            proofs: proofs,
            endpointsPath: endpointsPath,
            servesPlan: plan?.value == .on,
            probes: probes.paths,
            spillFolder: spills,
            fileRules: set,
            rulePlaces: rules.map(\.reader.place) + [fallback.reader.place],
            places: places
        )
    }

    /// Whoever may only read must not have a token that gives orders elsewhere.
    private func requireOwnTokens(_ listeners: [AdminListener]) {
        let ordering = listeners.filter { $0.serves.contains(.call) }
        let tokens = Set(ordering.compactMap(\.token?.authorization))
        for listener in listeners where !listener.serves.contains(.call) {
            guard let token = listener.token?.authorization, tokens.contains(token) else {
                continue
            }
            reader.log.error(
                reader.place(of: "admin"),
                "\(listener.keyPath).read_token_file",
                found: "the token with which calls are made at another listener",
                use: "a token of its own"
            )
        }
    }

    private func validateAddressSource() {
        guard let addressSource, trustedProxies.isEmpty else { return }
        reader.log.error(
            reader.place(of: "client_address"),
            addressSource.keyPath,
            found: "it without trusted_proxies",
            use: "trusted_proxies beside it"
        )
    }

    /// Each answer waits in memory for a slow client.
    private func validatePlan(_ set: RuleSet) {
        guard let plan, plan.value == .on else { return }
        let size = ClientPlan(set, endpoints: endpointsPath).json.count
        guard size > Self.planBytesMax else { return }
        reader.log.error(
            plan,
            found: "a plan of \(size >> 10) KiB",
            use: "fewer rules, for \(Self.planBytesMax >> 10) KiB at most; or off, and ship what "
                + "`portcullis plan` prints with the app"
        )
    }

    /// The longest plan that is served: about 500 rules. Apps read up to four times as much.
    private static let planBytesMax = 256 << 10

    private var endpointsPath: String { endpoints?.value ?? "/.well-known/app-attest" }

    /// Reports the mandatory sections that are missing.
    func requireSections() {
        reader.require("listen", use: "listen: [{ address: 0.0.0.0:8443 }]")
        reader.require("origins", use: "origins: { name: { servers: [10.0.0.5:8080] } }")
        reader.require("default", use: "default: { mode: deny }, or one with an origin")
    }

    /// The places of the settings that a start checks again.
    private var places: [String: Problem.Place] {
        var places = ["": reader.place]
        for key in ["admin", "store", "log", "process", "spill_folder"] where reader.has(key) {
            places[key] = reader.place(of: key)
        }
        if let file = store.file { places[file.keyPath] = file.place }
        for (keyPath, place) in listeners.compactMap(\.tls).flatMap(\.places) {
            places[keyPath] = place
        }
        for (keyPath, place) in origins.compactMap(\.tls).flatMap(\.places) {
            places[keyPath] = place
        }
        for server in origins.flatMap(\.servers) { places[server.keyPath] = server.place }
        for address in (listeners.map(\.address) + admin.map(\.address)).compactMap(\.self) {
            places[address.keyPath] = address.place
        }
        return places
    }

    /// The settings of the store for commands about keys.
    func validatedStore(files: some ConfigurationFiles) -> StoreSettings {
        let named = NamedFiles(folder: folder, disk: files, log: reader.log)
        let apps = validatedApps(named, [])
        validateStore(hasApps: !apps.isEmpty, files: files)
        return StoreSettings(store: store.place, apps: apps)
    }

    /// All rules and the default. The index is built only when they have no error.
    private func ruleSet(
        _ drafts: [RuleDraft],
        apps: [AppPolicy],
        _ proofs: [ProofSettings],
        log: ProblemLog
    ) -> RuleSet? {
        let names = origins.map(\.name.value)
        var validator = RuleValidation(origins: names, apps: self.apps, fallback, drafts, log: log)
        validator.proofs = ruleProofs(proofs, log)
        validator.keptFields = Dictionary(
            origins.map { ($0.name.value, $0.keptFields.map(\.value)) },
            uniquingKeysWith: { first, _ in first }
        )
        let built = drafts.enumerated().compactMap { validator.rule($1, index: $0) }
        validator.findShadows(drafts)
        validator.findUnreached(drafts, endpoints: endpointsPath)
        let methods = Set(drafts.flatMap { $0.match?.value.methods ?? [] })
        if let section = reader.node("rules"), methods.count > RuleSet.methodsMax {
            log.error(
                section.place,
                "rules",
                found: "too many method names",
                use: "at most \(RuleSet.methodsMax) different ones in all rules together"
            )
        }
        guard let fallback, let last = validator.fallbackRule(fallback, index: drafts.count),
            built.count == drafts.count
        else { return nil }
        let places = drafts.map { $0.match?.place ?? $0.reader.place } + [fallback.reader.place]
        validator.findSharedHosts(built + [last], places, apps)
        let enrolling = apps.compactMap { $0.android?.settings.integrity?.proof }
        validator.proofs.findUnused(built + [last], self.proofs, enrolling: enrolling)
        guard !log.hasErrors else { return nil }
        let set = RuleSet(built, default: last, origins: origins.map(\.paths))
        if let set { findAmbiguities(drafts, set) }
        return set
    }

    private func ruleProofs(_ proofs: [ProofSettings], _ log: ProblemLog) -> RuleProofs {
        RuleProofs(
            proofs.map(\.proof),
            of: self.proofs.map(\.name.value),
            bound: self.proofs.filter(\.isIntegrity).map(\.name.value),
            log: log
        )
    }

    /// Rules whose own requests their origin may assign to another rule.
    private func findAmbiguities(_ drafts: [RuleDraft], _ set: RuleSet) {
        for (draft, rule) in zip(drafts, set.rules) {
            guard let match = draft.match, let rival = set.rival(of: rule) else { continue }
            let steps = rival.interpretation.involved.map { "\($0.key): \($0.word)" }
            let origin = rule.origin.map { origins[$0.rawValue].name.value } ?? ""
            let path = String(decoding: rival.path, as: UTF8.self)
            reader.log.error(
                match,
                found: "only requests that meet rule \(rival.rule.id) too: servers that "
                    + "\(rival.interpretation.text) read their path as \(path)",
                use: "one rule for both; or paths: { \(steps.joined(separator: ", ")) } for the "
                    + "origin \(origin), if it does not do that"
            )
        }
    }

    /// No two listeners, for clients or for operators, may share an address.
    private func validatedListeners(_ files: NamedFiles) -> [ListenSettings] {
        var seen: [Located<ServerAddress>] = []
        func claim(_ address: Located<ServerAddress>) {
            if case .ip(_, port: 0) = address.value { return }
            if let taken = seen.lazy.compactMap({ Self.conflict(of: address, with: $0) }).first {
                reader.log.error(
                    address,
                    found: "\(address.value.text), which \(taken)",
                    use: "each address once"
                )
            }
            seen.append(address)
        }
        let settings = listeners.compactMap { draft -> ListenSettings? in
            guard let address = draft.address else { return nil }
            claim(address)
            let tls = draft.tls.flatMap { $0.validated(files) }
            return ListenSettings(
                address: address.value,
                tls: tls,
                http2: draft.http2?.value
                    ?? (tls == nil && draft.decides?.value != .extAuthzGRPC ? .off : .on),
                preface: preface(draft.proxyProtocol),
                decides: decides(draft)
            )
        }
        for draft in admin {
            guard let address = draft.address else { continue }
            claim(address)
            guard draft.mayTellTooMuch else { continue }
            reader.log.warning(
                address,
                found: address.value.text,
                use: "a loopback address or a Unix socket, or serves: [metrics, probes]: who "
                    + "reaches it reads rules and counts"
            )
        }
        return settings
    }

    private func preface(_ draft: Located<Bool>?) -> ListenSettings.Preface {
        guard let draft, draft.value else { return .none }
        if trustedProxies.isEmpty {
            reader.log.error(
                draft,
                found: "it without trusted_proxies, so that nobody may connect",
                use: "trusted_proxies with the addresses of the proxies that send the header"
            )
        }
        return .proxyHeader
    }

    /// Why the gateway can't listen on both addresses; `nil` when it can.
    private static func conflict(
        of address: Located<ServerAddress>,
        with first: Located<ServerAddress>
    ) -> String? {
        let place = first.place.text
        if address.value == first.value { return "is already at \(place)" }
        if first.value.includes(address.value) { return "\(first.value.text) at \(place) includes" }
        guard address.value.includes(first.value) else { return nil }
        return "includes \(first.value.text) at \(place)"
    }

    private func requireApps(_ rules: [RuleDraft]) {
        let verifying = (rules + [fallback].compactMap(\.self)).first { draft in
            draft.mode?.value.verifies ?? false && draft.takesAssertions
        }
        guard let verifying, !reader.has("apps") else { return }
        reader.log.error(
            reader.place,
            "apps",
            found: "no apps, while \(verifying.reader.place.text) verifies",
            use: "apps: [{ id: ABCDE12345.com.example.app, environments: [production] }]"
        )
    }

    private func validatedApps(_ files: NamedFiles, _ proofs: [ProofSettings]) -> [AppPolicy] {
        let proofs = ruleProofs(proofs, reader.log)
        var seen: [String: Problem.Place] = [:]
        return apps.compactMap { draft in
            if let id = draft.id {
                let use = "each App ID once, with all its environments"
                reader.log.claim(id, in: &seen, use: use)
            }
            return draft.validated(files, proofs)
        }
    }

    private func validateStore(hasApps: Bool, files: some ConfigurationFiles) {
        if hasApps, !reader.has("store") {
            reader.log.error(
                reader.place,
                "store",
                found: "no store, while there are apps",
                use: "store: { sqlite: portcullis.db }"
            )
        }
        guard let storeFile = store.file else { return }
        let folder = FilePath.folder(of: storeFile.value)
        let located = Located(value: folder, place: storeFile.place, keyPath: storeFile.keyPath)
        require(folder: located, files: files)
        // Files of another user can't be checked, but are closed to strangers anyway.
        for suffix in ["", "-wal", "-shm", ".lock", ".generation", ".socket", ".rollout"] {
            let path = storeFile.value + suffix
            guard let bits = try? files.permissions(of: path) else { continue }
            reader.log.check(store: storeFile, at: path, FileMode(bits))
        }
    }

    private func require(folder: Located<String>, files: some ConfigurationFiles) {
        do throws(FileFault) {
            _ = try files.names(in: folder.value)
        } catch {
            let found = error == .missing ? "no such folder" : error.found
            reader.log.error(
                folder,
                found: "\(found) (\(folder.value))",
                use: "a folder that exists"
            )
        }
    }
}
