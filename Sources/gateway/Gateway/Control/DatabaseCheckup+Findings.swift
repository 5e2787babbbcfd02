import Encodings
import KeyStore
import PostgreSQLKeyStore

// Checks of the database that the gateways of a fleet share.
extension DatabaseCheckup {
    /// With a much greater difference of clocks, challenges of five minutes are refused.
    private static let clockDifferenceMax = Duration.seconds(30)
    /// A use waits for a round trip, and for the database's disk.
    private static let roundTripSlow = Duration.milliseconds(20)

    var findings: [DoctorFinding] {
        var findings = [connected]
        if let fault = tableFault {
            findings.append(.error(.store, fault.detail, next: fault.next ?? "see its log"))
        }
        if !missingRights.isEmpty {
            findings.append(
                .error(
                    .store,
                    "the role lacks \(missingRights.joined(separator: ", "))",
                    next: "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA … TO …"
                )
            )
        }
        if isReadOnly {
            findings.append(
                .error(
                    .store,
                    "the database takes no writes: it is a standby, or set so",
                    next: "name all servers in host=, with target_session_attrs=read-write; else "
                        + "see default_transaction_read_only"
                )
            )
        }
        if synchronousCommit == "off" {
            findings.append(
                .warning(
                    .store,
                    "synchronous_commit is off: when the database crashes, what was admitted in "
                        + "its last moments may be admitted again",
                    next: "ALTER ROLE … SET synchronous_commit = on; nothing where that is accepted"
                )
            )
        }
        return findings + [clock, openConnections].compactMap(\.self)
    }

    private var connected: DoctorFinding {
        let (major, minor) = (version / 10_000, version % 10_000)
        let text =
            "the database is PostgreSQL \(major).\(minor), or like it; connected within "
            + "\(connectTime.nanosecondCount / 1_000_000) ms, answered within "
            + "\(roundTrip.nanosecondCount / 1_000_000) ms"
        guard roundTrip > Self.roundTripSlow else { return .ok(.store, text) }
        return .warning(
            .store,
            text + "; each request that is verified waits for such an answer",
            next: "run the gateways near the database; look again when it is idle"
        )
    }

    private var clock: DoctorFinding? {
        let difference = clockAhead < .zero ? .zero - clockAhead : clockAhead
        guard difference > Self.clockDifferenceMax else { return nil }
        return .warning(
            .clock,
            "the database's clock is \(difference.components.seconds) s "
                + (clockAhead < .zero ? "behind" : "ahead of") + " the one of this machine",
            next: "keep both right by NTP: challenges, leases and expiry go by them"
        )
    }

    /// Connections of a gateway, one for each purpose.
    private static let connectionsOfGateway = Int64(DatabaseStatistics.Role.allCases.count)

    private var openConnections: DoctorFinding? {
        guard let most = connectionsMax, let now = connections else { return nil }
        let text =
            "\(now) of at most \(most) connections are used; each gateway has up to "
            + "\(Self.connectionsOfGateway)"
        let (left, overflows) = most.subtractingReportingOverflow(now)
        // Three are kept for administrators (superuser_reserved_connections).
        guard overflows || left < Self.connectionsOfGateway * 2 + 3 else {
            return .ok(.store, text)
        }
        return .warning(
            .store,
            text,
            next: "raise max_connections: gateways that find no place answer 503, and an upgrade "
                + "has two processes for a moment"
        )
    }
}
