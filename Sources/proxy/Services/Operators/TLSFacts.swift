import Cryptography
import Encodings
import Telemetry

/// The state of the listeners' certificates.
package struct TLSFacts: Sendable {
    /// A certificate that a listener shows.
    package struct Certificate: Sendable {
        package var listener: String
        package var file: String
        package var names: [String]
        package var expiresAtSeconds: Int64

        package init(
            listener: String,
            file: String,
            names: [String],
            expiresAtSeconds: Int64
        ) {
            self.listener = listener
            self.file = file
            self.names = names
            self.expiresAtSeconds = expiresAtSeconds
        }
    }

    /// A list of revoked certificates, by which a listener checks its clients'.
    package struct RevocationList: Sendable {
        package var listener: String
        package var file: String
        package var issuer: String
        package var endsAtSeconds: Int64

        package init(listener: String, file: String, issuer: String, endsAtSeconds: Int64) {
            self.listener = listener
            self.file = file
            self.issuer = issuer
            self.endsAtSeconds = endsAtSeconds
        }
    }

    package var certificates: [Certificate] = []
    package var revocationLists: [RevocationList] = []
    /// The number of times that changed files could not be used.
    package var refusals: UInt64
    /// Why the current files can't be used; `nil` when they are in use.
    package var fault: String?

    package init(refusals: UInt64 = 0, fault: String? = nil) {
        self.refusals = refusals
        self.fault = fault
    }

    func write(into out: inout Exposition) {
        let expiry = "certificate_expiry_timestamp_seconds"
        out.metric(expiry, type: "gauge", help: "When a certificate ends, Unix time.")
        for certificate in certificates {
            out.sample(expiry, labels: certificate.labels, certificate.expiresAtSeconds)
        }
        let lists = "crl_expiry_timestamp_seconds"
        out.metric(
            lists,
            type: "gauge",
            help: "When a list of revoked certificates ends, Unix time."
        )
        for list in revocationLists { out.sample(lists, labels: list.labels, list.endsAtSeconds) }
        out.gauge(
            "certificates_last_load_success",
            fault == nil ? 1 : 0,
            help: "0 when changed files of certificates can't be used and the previous ones are."
        )
        out.counter(
            "certificate_loads_refused_total",
            refusals,
            help: "Times that changed files of certificates could not be used."
        )
    }

    /// Writes the certificates for `/status`.
    func write(into out: inout JSONWriter) {
        out.object("certificates") { out in
            out.member("loads_refused", refusals)
            out.member("last_error", fault)
            out.objects("shown", of: certificates) { out, certificate in
                out.member("listener", certificate.listener)
                out.member("file", certificate.file)
                out.texts("names", certificate.names)
                let end = UnixTime(seconds: certificate.expiresAtSeconds)
                out.member("ends_at", end.iso8601)
            }
            out.objects("revocation_lists", of: revocationLists) { out, list in
                out.member("listener", list.listener)
                out.member("file", list.file)
                out.member("issuer", list.issuer)
                out.member("ends_at", UnixTime(seconds: list.endsAtSeconds).iso8601)
            }
        }
    }
}

extension TLSFacts.Certificate {
    fileprivate var labels: [(String, String)] { [("listener", listener), ("certificate", file)] }
}

extension TLSFacts.RevocationList {
    fileprivate var labels: [(String, String)] {
        [("listener", listener), ("crl", file), ("issuer", issuer)]
    }
}
