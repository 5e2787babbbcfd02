import ConfigurationReading
package import Encodings
import EventLoops
import Glibc
import KeyStore
import PostgreSQLKeyStore

/// `portcullis doctor`: looks for common faults around a gateway, on its machine and as its user.
///
/// `check` judges the files; the doctor tries them. It binds addresses for a moment, writes and
/// deletes a file in the store's folder, connects to the store's database, and sends one request to
/// each server of an origin and to each service of a test for people. It does not disturb a gateway
/// that runs on the same configuration.
package enum Doctor {
    /// Makes all checks.
    ///
    /// - ended: called once, on a thread of the doctor.
    package static func examine(_ file: String, ended: @escaping @Sendable (DoctorReport) -> Void) {
        let loaded = Preparation.load(file)
        let silence = [loaded.configuration?.commandProblem].compactMap(\.self)
        var findings = (loaded.problems + silence).map(finding)
        guard let configuration = loaded.configuration else {
            findings += [clock, descriptors(nil)]
            return ended(DoctorReport(file: file, findings))
        }
        if findings.isEmpty { findings.append(.ok(.configuration, "\(file) can be served")) }
        findings += [clock, descriptors(configuration)]
        findings += addresses(configuration)
        findings += certificates(configuration)
        findings += disk(configuration)
        findings += database(configuration)
        let rest = findings
        OriginTrial.run(configuration) { origins in
            ServiceTrial.run(configuration) { services in
                ended(DoctorReport(file: file, rest + origins + services))
            }
        }
    }

    /// Sends trials through the front at an address, and reports what it changes on the way to the
    /// gateway that runs with this configuration.
    ///
    /// - ended: called once, on a thread of the doctor.
    package static func examine(
        _ file: String,
        through front: FrontAddress,
        ended: @escaping @Sendable (DoctorReport) -> Void
    ) {
        let loaded = ConfigurationLoader.load(file)
        guard let configuration = loaded.configuration else {
            return ended(DoctorReport(file: file, loaded.problems.map(finding)))
        }
        FrontCheck.run(configuration, front) { ended(DoctorReport(file: file, $0)) }
    }

    private static func database(_ configuration: GatewayConfiguration) -> [DoctorFinding] {
        guard case .postgresql(let database) = configuration.store else { return [] }
        do throws(JournalError) {
            return try DatabaseCheckup(database).findings
        } catch {
            return [.error(.store, error.detail, next: error.next ?? "see the database's log")]
        }
    }

    private static func finding(_ problem: Problem) -> DoctorFinding {
        let place = problem.keyPath.isEmpty ? "" : ": \(problem.keyPath)"
        return DoctorFinding(
            severity: problem.severity == .error ? .error : .warning,
            subject: .configuration,
            found: "\(problem.place.text)\(place): \(problem.found)",
            next: "use \(problem.use)"
        )
    }

    /// Checks certificates that can be loaded: their ends, and whether clients find their roots.
    /// Others are among the problems of the configuration.
    private static func certificates(_ configuration: GatewayConfiguration) -> [DoctorFinding] {
        let loaded = LoadedCertificates(configuration, TLSSurroundings())
        let now = Int64(time(nil))
        let contexts = loaded.listeners.compactMap(\.self)
        // Lists that end soon, or have ended, have a warning of their own.
        let lists = Set(contexts.flatMap(\.revocationLists)).filter { $0.ending(now) == nil }
        let ends = lists.sorted { $0.file < $1.file }.map { list in
            let end = LoadedCertificates.text(list.end - now)
            return DoctorFinding.ok(
                .certificates,
                "\(list.file): the list of revoked certificates of \(list.issuer) ends in \(end)"
            )
        }
        return ends
            + contexts.flatMap(\.certificates).map { certificate in
                guard certificate.expiry > now else {
                    return .error(
                        .certificates,
                        "\(certificate.file) has ended; clients refuse it since "
                            + "\((now - certificate.expiry) / 86_400) days",
                        next: "renew it; a gateway that runs reads the file again by itself"
                    )
                }
                let days = (certificate.expiry - now) / 86_400
                // Certificates that expire soon have a warning of their own.
                let end = "\(certificate.file) ends in \(days) day\(days == 1 ? "" : "s")"
                guard let fault = CertificateChain.fault(of: certificate.file) else {
                    return .ok(.certificates, end)
                }
                return .warning(
                    .certificates,
                    "\(end); clients that trust what this machine trusts refuse it: \(fault)",
                    next: "write the intermediate certificates behind it, in their order; nothing "
                        + "where clients trust an authority of your own"
                )
            }
    }
}

/// The output of `portcullis doctor`.
package struct DoctorReport: Sendable {
    /// The user's name of the file.
    package let file: String
    package let findings: [DoctorFinding]

    init(file: String, _ findings: [DoctorFinding]) {
        self.file = file
        self.findings = findings
    }

    private func count(_ severity: DoctorFinding.Severity) -> Int {
        findings.count { $0.severity == severity }
    }

    /// 1 when there is an error. Warnings don't change it.
    package var exitStatus: Int32 { count(.error) > 0 ? 1 : 0 }

    /// A line for each finding, with the next step below it, and a summary.
    package var text: String {
        var lines: [String] = []
        for finding in findings {
            let severity = Self.padded(finding.severity.rawValue, 8)
            let subject = Self.padded(finding.subject.rawValue, 14)
            lines.append("\(severity) \(subject) \(finding.found)")
            if !finding.next.isEmpty { lines.append("    next: \(finding.next)") }
        }
        lines.append(
            "\(file): \(Self.count(count(.error), "error")), "
                + Self.count(count(.warning), "warning")
        )
        return lines.joined(separator: "\n") + "\n"
    }

    /// The report for scripts.
    package var json: JSONValue {
        .object([
            .init("file", .string(file)), .init("errors", .number(Int64(count(.error)))),
            .init("warnings", .number(Int64(count(.warning)))),
            .init(
                "findings",
                .array(
                    findings.map { finding in
                        .object([
                            .init("severity", .string(finding.severity.rawValue)),
                            .init("subject", .string(finding.subject.rawValue)),
                            .init("found", .string(finding.found)),
                            .init("next", .text(finding.next.isEmpty ? nil : finding.next)),
                        ])
                    }
                )
            ),
        ])
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    private static func count(_ number: Int, _ noun: String) -> String {
        "\(number) \(noun)\(number == 1 ? "" : "s")"
    }
}
