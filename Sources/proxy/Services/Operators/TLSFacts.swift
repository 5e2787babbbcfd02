import Cryptography
import Encodings
import Telemetry

/// The state of the listeners' certificates.
package struct TLSFacts: Sendable {
    /// The OCSP response that is stapled to a certificate.
    package enum Staple: Sendable {
        /// No file is named.
        case notConfigured
        /// The file has no response that can be sent.
        case none
        /// A response, sent until this time.
        case until(seconds: Int64)
    }

    /// A certificate that a listener shows.
    package struct Certificate: Sendable {
        package var listener: String
        package var file: String
        package var names: [String]
        package var expiresAtSeconds: Int64
        package var staple: Staple
        /// Why the file's response is not stapled; `nil` when it is.
        package var stapleProblem: String?

        package init(
            listener: String,
            file: String,
            names: [String],
            expiresAtSeconds: Int64,
            staple: Staple,
            stapleProblem: String?
        ) {
            self.listener = listener
            self.file = file
            self.names = names
            self.expiresAtSeconds = expiresAtSeconds
            self.staple = staple
            self.stapleProblem = stapleProblem
        }
    }

    package var certificates: [Certificate] = []
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
            out.sample(expiry, certificate.labels, certificate.expiresAtSeconds)
        }
        let staple = "certificate_ocsp_expiry_timestamp_seconds"
        out.metric(
            staple,
            type: "gauge",
            help: "When the OCSP response of a certificate ends, Unix time; 0 when there is none."
        )
        for certificate in certificates {
            switch certificate.staple {
            case .notConfigured: break
            case .none: out.sample(staple, certificate.labels, 0)
            case .until(let end): out.sample(staple, certificate.labels, end)
            }
        }
        out.gauge(
            "certificates_last_load_success",
            fault == nil ? 1 : 0,
            "0 when changed files of certificates can't be used and the previous ones are."
        )
        out.counter(
            "certificate_loads_refused_total",
            refusals,
            "Times that changed files of certificates could not be used."
        )
    }

    /// Writes the certificates for `/status`.
    func write(into out: inout JSONWriter) {
        out.object("certificates") { out in
            out.member("loads_refused", refusals)
            out.member("last_error", fault)
            out.objects("shown", certificates) { out, certificate in
                out.member("listener", certificate.listener)
                out.member("file", certificate.file)
                out.texts("names", certificate.names)
                let end = UnixTime(seconds: certificate.expiresAtSeconds)
                out.member("ends_at", end.iso8601)
                out.member("ocsp_problem", certificate.stapleProblem)
                guard case .until(let seconds) = certificate.staple else { return }
                out.member("ocsp_ends_at", UnixTime(seconds: seconds).iso8601)
            }
        }
    }
}

extension TLSFacts.Certificate {
    fileprivate var labels: [(String, String)] { [("listener", listener), ("certificate", file)] }
}
