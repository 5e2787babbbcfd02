import TLSSession

// What is said of OCSP responses. None of it is an error: a certificate without a response is
// better than no certificate.
extension LoadedCertificates {
    /// A response that ends within a day is worth a warning. Authorities sign the next one when
    /// half of the time is over, which mostly are some days.
    static let stapleWarningSeconds: Int64 = 86_400

    /// A problem of what is stapled to a certificate.
    struct StapleFinding: Equatable {
        /// The key of the configuration, beside the certificate's.
        let key: String
        let found: String
        let use: String
    }

    /// What is wrong with the response of a certificate, or soon will be; `nil` for nothing.
    static func staple(of certificate: TLSCertificate, _ now: Int64) -> StapleFinding? {
        guard let file = certificate.stapleFile else {
            guard certificate.demandsStaple else { return nil }
            return StapleFinding(
                key: "certificate",
                found: """
                    a certificate that demands an OCSP response (\(certificate.file)), so that \
                    some clients refuse it without one
                    """,
                use: "ocsp beside it: a file with the authority's response"
            )
        }
        let until = certificate.staple.map(\.validUntil)
        let rest = until.map { $0 > now ? "ends in \(text($0 - now))" : "has ended" }
        if let problem = certificate.stapleProblem {
            let kept = rest.map { "; the previous response, which \($0), is sent until its end" }
            let found = "\(problem.found) (\(file))\(kept ?? "; none is sent")"
            return StapleFinding(key: "ocsp", found: found, use: problem.use)
        }
        guard let until, let rest, until - now < stapleWarningSeconds else { return nil }
        let isOver = until <= now ? ", so that none is sent" : ""
        return StapleFinding(
            key: "ocsp",
            found: "a response that \(rest) (\(file))\(isOver)",
            use: StapleProblem.expired.use
        )
    }
}
