import ConfigurationReading
import Encodings
import KeyStore
import PostgreSQLKeyStore

// Checks of the database that the gateways of a fleet share.
extension Doctor {
    /// With a much greater difference of clocks, challenges of five minutes are refused.
    private static let clockDifferenceMax = Duration.seconds(30)
    /// A use waits for a round trip, and for the database's disk.
    private static let roundTripSlow = Duration.milliseconds(20)

    static func database(_ configuration: GatewayConfiguration) -> [Finding] {
        guard case .postgresql(let database) = configuration.store else { return [] }
        do throws(JournalError) {
            return findings(try DatabaseCheckup(database))
        } catch {
            return [.error(.store, error.detail, next: error.next ?? "see the database's log")]
        }
    }

    static func findings(_ found: DatabaseCheckup) -> [Finding] {
        var findings = [connected(found)]
        if let fault = found.tableFault {
            findings.append(.error(.store, fault.detail, next: fault.next ?? "see its log"))
        }
        if !found.missingRights.isEmpty {
            findings.append(
                .error(
                    .store,
                    "the role lacks \(found.missingRights.joined(separator: ", "))",
                    next: "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA … TO …"
                )
            )
        }
        if found.isReadOnly {
            findings.append(
                .error(
                    .store,
                    "the database takes no writes: it is a standby, or set so",
                    next: "name all servers in host=, with target_session_attrs=read-write; else "
                        + "see default_transaction_read_only"
                )
            )
        }
        if found.synchronousCommit == "off" {
            findings.append(
                .warning(
                    .store,
                    "synchronous_commit is off: when the database crashes, what was admitted in "
                        + "its last moments may be admitted again",
                    next: "ALTER ROLE … SET synchronous_commit = on; nothing where that is accepted"
                )
            )
        }
        return findings + [clock(found), connections(found)].compactMap(\.self)
    }

    private static func connected(_ found: DatabaseCheckup) -> Finding {
        let (major, minor) = (found.version / 10_000, found.version % 10_000)
        let text =
            "the database is PostgreSQL \(major).\(minor), or like it; connected within "
            + "\(found.connectTime.nanosecondCount / 1_000_000) ms, answered within "
            + "\(found.roundTrip.nanosecondCount / 1_000_000) ms"
        guard found.roundTrip > roundTripSlow else { return .ok(.store, text) }
        return .warning(
            .store,
            text + "; each request that is verified waits for such an answer",
            next: "run the gateways near the database; look again when it is idle"
        )
    }

    private static func clock(_ found: DatabaseCheckup) -> Finding? {
        let difference = found.clockAhead < .zero ? .zero - found.clockAhead : found.clockAhead
        guard difference > clockDifferenceMax else { return nil }
        return .warning(
            .clock,
            "the database's clock is \(difference.components.seconds) s "
                + (found.clockAhead < .zero ? "behind" : "ahead of") + " the one of this machine",
            next: "keep both right by NTP: challenges, leases and expiry go by them"
        )
    }

    /// Connections of a gateway, one for each purpose.
    private static let connectionsOfGateway = Int64(DatabaseStatistics.Role.allCases.count)

    private static func connections(_ found: DatabaseCheckup) -> Finding? {
        guard let most = found.connectionsMax, let now = found.connections else { return nil }
        let text =
            "\(now) of at most \(most) connections are used; each gateway has up to "
            + "\(connectionsOfGateway)"
        let (left, overflows) = most.subtractingReportingOverflow(now)
        // Three are kept for administrators (superuser_reserved_connections).
        guard overflows || left < connectionsOfGateway * 2 + 3 else { return .ok(.store, text) }
        return .warning(
            .store,
            text,
            next: "raise max_connections: gateways that find no place answer 503, and an upgrade "
                + "has two processes for a moment"
        )
    }
}
