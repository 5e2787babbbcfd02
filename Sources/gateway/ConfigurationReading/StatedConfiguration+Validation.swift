import HTTPWire
import Parties
import Proxy
import Rules
import Services

extension StatedConfiguration {
    /// The complete configuration, if the log has no error.
    func validated(
        rules: [StatedRule],
        files: some ConfigurationFiles,
        log: ProblemLog
    ) -> GatewayConfiguration? {
        requireSections()
        let named = NamedFiles(folder: folder, disk: files, log: reader.log)
        var settings = settings
        validateListeners(named)
        requireApps(rules)
        settings.parties = parties
        settings.proofs = proofs.validated(named, hasStore: reader.has("store"))
        settings.apps = validatedApps(named, settings.proofs)
        settings.statedApps = apps.map(\.value)
        validateStore(hasApps: !settings.apps.isEmpty, files: files)
        settings.apple = apple?.validated(named) ?? AppleSettings()
        validateAddressSource()
        validateAudiences()
        settings.admin = settings.admin.map { $0.readingToken(named) }
        requireOwnTokens(settings.admin)
        if let folder = stated.located("spill_folder", \.spillFolder) {
            require(folder: folder, files: files)
        }

        guard let fallback,
            let set = ruleSet(rules, apps: settings.apps, settings.proofs, log: log)
        else { return nil }
        settings.spillFolder = chosenSpillFolder(files: files)
        settings.limits = limits(spillingTo: settings.spillFolder, set, files: files)
        validateHeld(zip(rules + [fallback], set.rules), settings.limits, in: settings.spillFolder)
        validateStreamed(zip(rules + [fallback], set.rules))
        validateDecisions(zip(rules + [fallback], set.rules))
        let devices = DeviceRuleValidation(
            apps: settings.apps,
            apple: settings.apple,
            log: reader.log
        )
        devices.validateDevices(zip(rules + [fallback], set.rules))
        devices.validateRisk(zip(rules + [fallback], set.rules))
        devices.validateIntegrity(zip(rules + [fallback], set.rules))
        validatePlan(set)
        settings.probes.validate(endpoints: settings.endpointsPath, set, log: reader.log)
        validate(spillFolder: settings.spillFolder, set, files: files)
        for origin in settings.origins { origin.validate(named) }
        settings.verdict = settings.verdict?.readingKey(named)
        settings.google = google?.validated(named) ?? GoogleSettings()
        settings.tracing = tracing?.validated(named) ?? TracingSettings()
        let ruleFiles = Set(rules.map(\.place.file)).subtracting([reader.place.file])
        return GatewayConfiguration(
            settings: settings,
            fileRules: set,
            rulePlaces: rules.map(\.reader.place) + [fallback.reader.place],
            // Those of rules in other files are not asked for.
            places: reader.log.places.filter { !ruleFiles.contains($0.value.file) }
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

    /// Reports audiences of origins where verdicts are not signed.
    private func validateAudiences() {
        guard settings.verdict == nil else { return }
        for origin in settings.origins {
            guard let audience = origin.audience else { continue }
            reader.log.error(
                reader.log.located("\(origin.keyPath).audience", audience),
                found: "it without signed verdicts, which are what has an audience",
                use: "verdict: { jwt: { key: verdict.pem, audience: orders } } beside it, or no "
                    + "audience"
            )
        }
    }

    private func validateAddressSource() {
        guard stated.located("client_address", \.addressSource) != nil,
            settings.trustedProxies.isEmpty
        else { return }
        reader.error(
            "client_address",
            found: "it without trusted_proxies",
            use: "trusted_proxies beside it"
        )
    }

    /// Each answer waits in memory for a slow client.
    private func validatePlan(_ set: RuleSet) {
        guard settings.servesPlan else { return }
        let size = ClientPlan(set, endpoints: settings.endpointsPath).json.count
        guard size > Self.planBytesMax else { return }
        reader.error(
            "plan",
            found: "a plan of \(size >> 10) KiB",
            use: "fewer rules, for \(Self.planBytesMax >> 10) KiB at most; or off, and ship what "
                + "`portcullis plan` prints with the app"
        )
    }

    /// The longest plan that is served: about 500 rules. Apps read up to four times as much.
    private static let planBytesMax = 256 << 10

    /// Reports the mandatory sections that are missing.
    func requireSections() {
        reader.require("listen", use: "listen: [{ address: 0.0.0.0:8443 }]")
        reader.require("origins", use: "origins: { name: { servers: [10.0.0.5:8080] } }")
        reader.require("default", use: "default: { mode: deny }, or one with an origin")
    }

    /// The settings of the store for commands about keys.
    func validatedStore(files: some ConfigurationFiles) -> KeySettings {
        let named = NamedFiles(folder: folder, disk: files, log: reader.log)
        let apps = validatedApps(named, [])
        validateStore(hasApps: !apps.isEmpty, files: files)
        return KeySettings(store: settings.store, apps: apps)
    }

    /// All rules and the default. The index is built only when they have no error.
    private func ruleSet(
        _ stated: [StatedRule],
        apps: [AppPolicy],
        _ proofs: [ProofSettings],
        log: ProblemLog
    ) -> RuleSet? {
        let origins = settings.origins
        let names = origins.map(\.name)
        var validator = RuleValidation(origins: names, apps: self.apps, fallback, stated, log: log)
        validator.proofs = ruleProofs(proofs, log)
        validator.keptFields = Dictionary(
            origins.map { ($0.name, $0.keptFields) },
            uniquingKeysWith: { first, _ in first }
        )
        let built = stated.enumerated().compactMap { validator.rule($1, index: $0) }
        validator.findShadows(stated)
        validator.findUnreached(stated, endpoints: settings.endpointsPath)
        validator.findAbsentClients(stated, among: settings.reachedClients)
        let methods = Set(stated.flatMap { $0.value.match?.methods ?? [] })
        if let section = reader.node("rules"), methods.count > RuleSet.methodsMax {
            log.error(
                section.place,
                "rules",
                found: "too many method names",
                use: "at most \(RuleSet.methodsMax) different ones in all rules together"
            )
        }
        guard let fallback, let last = validator.fallbackRule(fallback, index: stated.count),
            built.count == stated.count
        else { return nil }
        let places = stated.map { $0.reader.place(of: "match") } + [fallback.reader.place]
        validator.findSharedHosts(built + [last], at: places, of: apps)
        let enrolling = apps.compactMap { $0.android?.settings.integrity?.proof }
        validator.proofs.findUnused(built + [last], self.proofs, enrolling: enrolling)
        guard !log.hasErrors else { return nil }
        let set = RuleSet(built, default: last, origins: origins.map(\.paths))
        if let set { findAmbiguities(stated, set) }
        return set
    }

    private func ruleProofs(_ proofs: [ProofSettings], _ log: ProblemLog) -> RuleProofs {
        RuleProofs(
            proofs.map(\.proof),
            of: self.proofs.map(\.name.value),
            bound: self.proofs.filter(\.isBound).map(\.name.value),
            log: log
        )
    }

    /// Rules whose own requests their origin may assign to another rule.
    private func findAmbiguities(_ rules: [StatedRule], _ set: RuleSet) {
        for (stated, rule) in zip(rules, set.rules) {
            guard let rival = set.rival(of: rule) else { continue }
            let steps = rival.interpretation.involved.map { "\($0.key): \($0.word)" }
            let origin = rule.origin.map { settings.origins[$0.rawValue].name } ?? ""
            let path = String(decoding: rival.path, as: UTF8.self)
            stated.reader.error(
                "match",
                found: "only requests that meet rule \(rival.rule.id) too: servers that "
                    + "\(rival.interpretation.text) read their path as \(path)",
                use: "one rule for both; or paths: { \(steps.joined(separator: ", ")) } for the "
                    + "origin \(origin), if it does not do that"
            )
        }
    }

    /// No two listeners, for clients or for operators, may share an address.
    private func validateListeners(_ files: NamedFiles) {
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
        for listener in settings.listeners {
            claim(reader.log.located("\(listener.keyPath).address", listener.address))
            listener.tls?.validate(files)
            listener.validate(trustsProxies: !settings.trustedProxies.isEmpty, reader.log)
        }
        for listener in settings.admin {
            let address = reader.log.located("\(listener.keyPath).address", listener.address)
            claim(address)
            guard listener.mayTellTooMuch else { continue }
            reader.log.warning(
                address,
                found: address.value.text,
                use: "a loopback address or a Unix socket, or serves: [metrics, probes]: who "
                    + "reaches it reads rules and counts"
            )
        }
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

    private func requireApps(_ rules: [StatedRule]) {
        let verifying = (rules + [fallback].compactMap(\.self)).first { rule in
            rule.value.mode?.verifies ?? false && rule.value.takesAssertions
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
        return apps.compactMap { app in
            if let id = app.name {
                let use = "each App ID once, with all its environments"
                reader.log.claim(id, in: &seen, use: use)
            }
            return app.validated(files, proofs)
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
        guard let path = settings.store.file else { return }
        let storeFile = reader.log.located("store.sqlite", path)
        require(folder: storeFile.map { FilePath.folder(of: $0) }, files: files)
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
            guard !reader.log.assumes(folder: folder, error) else { return }
            let found = error == .missing ? "no such folder" : error.found
            reader.log.error(
                folder,
                found: "\(found) (\(folder.value))",
                use: "a folder that exists"
            )
        }
    }
}
