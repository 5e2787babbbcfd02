import AppAttest
import Rules

/// The report of `portcullis check`.
package struct Check: Sendable {
    /// Problems first, then what the configuration means.
    package let text: String
    /// 0 when the configuration can be served, 1 when not. Warnings do not change it.
    package let exitStatus: Int32

    /// Reports on what was loaded from a file, named as the user named it.
    package init(_ loaded: LoadedConfiguration, file: String) {
        var lines = loaded.problems.map(\.text)
        guard let configuration = loaded.configuration else {
            lines.append("\(file): refused, \(Self.count(loaded.errors.count, "error"))")
            text = lines.joined(separator: "\n") + "\n"
            exitStatus = 1
            return
        }
        lines += Self.summary(configuration)
        lines.append("\(file): ok, \(Self.count(loaded.warnings.count, "warning"))")
        text = lines.joined(separator: "\n") + "\n"
        exitStatus = 0
    }

    private static func count(_ number: Int, _ noun: String) -> String {
        "\(number) \(noun)\(number == 1 ? "" : "s")"
    }

    private static func summary(_ configuration: GatewayConfiguration) -> [String] {
        var lines: [String] = []
        for listener in configuration.listeners {
            let tls = listener.tls.map { " TLS \($0.minimumVersion.rawValue) and later" } ?? ""
            lines.append("listen   \(listener.address.text)\(tls)")
        }
        if let admin = configuration.admin { lines.append("admin    \(admin.text)") }
        for origin in configuration.origins {
            let servers = origin.servers.map(\.text).joined(separator: ", ")
            lines.append("origin   \(origin.name): \(servers)")
        }
        for app in configuration.apps {
            let environments =
                app.environments.map(\.rawValue).sorted()
                + (app.isTest ? ["test"] : [])
            lines.append("app      \(app.id): \(environments.joined(separator: ", "))")
        }
        lines.append("rules    the first that matches decides")
        for (rule, place) in zip(configuration.rules.rules, configuration.rulePlaces) {
            let isDefault = rule === configuration.rules.fallback
            let match = isDefault ? "everything else" : rule.match.text
            let origin = configuration.origin(of: rule).name
            lines.append("  \(rule.id): \(match) → \(origin), \(rule.modeText)  (\(place.text))")
            lines += rule.demandLines.map { "    \($0)" }
        }
        lines.append(coverage(configuration))
        return lines
    }

    /// What the rules leave to the default, which is easily more than meant.
    private static func coverage(_ configuration: GatewayConfiguration) -> String {
        let fate =
            switch configuration.rules.fallback.mode {
            case .off: "forwarded without being verified"
            case .observe: "verified and forwarded whatever the verdict"
            case .enforce: "verified and refused unless they pass"
            }
        return "coverage requests that meet no rule are \(fate)"
    }
}
