import AppAttest
import HTTPWire
import Rules
import Services

/// The report of `portcullis check`.
package struct Check: Sendable {
    /// Problems first, then the meaning of the configuration.
    package let text: String
    /// 0 when the configuration can be served, 1 when not. Warnings don't change it.
    package let exitStatus: Int32

    /// Reports on the configuration that was loaded from a file, under the user's name of the file.
    package init(_ loaded: LoadedConfiguration, file: String) {
        var lines = loaded.problems.map(\.text)
        guard let configuration = loaded.configuration else {
            lines.append("\(file): refused, \(Self.count(loaded.errors.count, "error"))")
            text = lines.joined(separator: "\n") + "\n"
            exitStatus = 1
            return
        }
        lines += Self.summary(configuration, loaded.orders)
        let coverage = Coverage(configuration)
        lines += Self.lines(coverage, configuration)
        let warnings = loaded.warnings.count + coverage.warningCount
        lines.append("\(file): ok, \(Self.count(warnings, "warning"))")
        text = lines.joined(separator: "\n") + "\n"
        exitStatus = 0
    }

    private static func count(_ number: Int, _ noun: String) -> String {
        "\(number) \(noun)\(number == 1 ? "" : "s")"
    }

    private static func summary(
        _ configuration: GatewayConfiguration,
        _ orders: RolloutOrders
    ) -> [String] {
        var lines: [String] = []
        for listener in configuration.listeners {
            let tls = listener.tls.map { " TLS \($0.minimumVersion.rawValue) and later" } ?? ""
            let asks = listener.decides.map { ", decides as \($0.text)" } ?? ""
            lines.append("listen   \(listener.address.text)\(tls)\(asks)")
        }
        if configuration.servesPlan {
            lines.append(
                "plan     \(configuration.endpointsPath)/plan: anybody reads the hosts, paths and "
                    + "names of all rules"
            )
        }
        if !configuration.probes.all.isEmpty {
            let probes = configuration.probes.all.map { "\($0.path) (\($0.key))" }
            lines.append("probes   \(probes.joined(separator: ", ")), on every listener")
        }
        if let admin = configuration.admin { lines.append("admin    \(admin.text)") }
        for origin in configuration.origins {
            let servers = origin.servers.map(\.text).joined(separator: ", ")
            let paths = origin.paths.settingText.map { "; paths \($0)" } ?? ""
            lines.append("origin   \(origin.name): \(servers)\(paths)")
        }
        for app in configuration.apps {
            let environments =
                app.environments.map(\.rawValue).sorted()
                + (app.isTest ? ["test"] : [])
            lines.append("app      \(app.id): \(environments.joined(separator: ", "))")
        }
        if let text = configuration.spillText { lines.append("held     \(text)") }
        lines.append("rules    the first that matches decides")
        for (rule, place) in zip(configuration.rules.rules, configuration.rulePlaces) {
            let isDefault = rule === configuration.rules.fallback
            let match = isDefault ? "everything else" : rule.match.text
            let origin = configuration.origin(of: rule).map { " → \($0.name)" } ?? ""
            lines.append("  \(rule.id): \(match)\(origin), \(rule.modeText)  (\(place.text))")
            if let text = orders.standing(of: rule).orderText { lines.append("    \(text)") }
            lines += rule.demandLines.map { "    \($0)" }
            lines += unusualKeys(rule, configuration.apps).map { "    \($0)" }
        }
        return lines + strictCost(configuration.rules.rules)
    }

    /// The cost of strict counters for apps, once for all rules with one.
    private static func strictCost(_ rules: [Rule]) -> [String] {
        let number = rules.count { $0.mode.verifies && $0.counter == .strict }
        guard number > 0 else { return [] }
        let subject = number == 1 ? "1 rule is" : "\(number) rules are"
        return [
            """
            counter  \(subject) strict: an app sends its requests one after the other, those to \
            other rules too (eight of 2s take 16s); { window: 64 } admits each counter once, too
            """
        ]
    }

    /// The admitted keys of a rule that Apple's production environment has not attested.
    private static func unusualKeys(_ rule: Rule, _ apps: [AppPolicy]) -> [String] {
        guard rule.mode.verifies else { return [] }
        let admitted = apps.filter(rule.apps.admits)
        let kinds = [
            ("test", admitted.filter(\.isTest)),
            ("development", admitted.filter { $0.environments.contains(.development) }),
        ]
        return kinds.compactMap { kind, apps in
            guard !apps.isEmpty else { return nil }
            return "admits \(kind) keys of \(apps.map(\.id).joined(separator: ", "))"
        }
    }

    /// The requests that the rules leave to the default, which are easily more than intended, and
    /// those that bypass an enforced rule.
    private static func lines(_ coverage: Coverage, _ configuration: GatewayConfiguration)
        -> [String]
    {
        let fate =
            switch configuration.rules.fallback.mode {
            case .off: "forwarded without being verified"
            case .observe: "verified and forwarded whatever the verdict"
            case .enforce: "verified and refused unless they pass"
            case .deny: "answered 404 and not forwarded"
            }
        var lines = ["coverage requests that meet no rule are \(fate)"]
        guard configuration.rules.rules.contains(where: { $0.mode == .enforce }) else {
            return lines + ["coverage no rule is enforced"]
        }
        if coverage.entries.isEmpty {
            lines.append("coverage no way past an enforced rule was found")
        } else {
            lines.append(
                "coverage what reaches an enforced rule's origin without an enforced verdict"
            )
            lines += coverage.lines
        }
        return lines
    }
}
