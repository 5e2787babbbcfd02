/// A finding of `portcullis doctor`.
package struct DoctorFinding: Hashable, Sendable {
    package enum Severity: String, CaseIterable, Sendable {
        case ok, warning, error
    }

    /// The subject of the check. The raw value is printed, and is API for scripts.
    package enum Subject: String, CaseIterable, Sendable {
        case configuration, clock, descriptors, addresses, certificates, store, disk, origins
        case proofs, front
    }

    package let severity: Severity
    package let subject: Subject
    package let found: String
    /// The next step; empty where there is none.
    package let next: String

    static func ok(_ subject: Subject, _ found: String) -> DoctorFinding {
        DoctorFinding(severity: .ok, subject: subject, found: found, next: "")
    }

    static func warning(_ subject: Subject, _ found: String, next: String) -> DoctorFinding {
        DoctorFinding(severity: .warning, subject: subject, found: found, next: next)
    }

    static func error(_ subject: Subject, _ found: String, next: String) -> DoctorFinding {
        DoctorFinding(severity: .error, subject: subject, found: found, next: next)
    }
}
