internal import Encodings

extension X509Certificate {
    /// The most certificates that are examined while a path is built.
    static let pathCandidatesMax = 16

    /// The path from this certificate to one of the anchors, all of it valid at `time`: this
    /// certificate first, the anchor last.
    ///
    /// Exactly the given anchors are trusted, and they have to be self-signed: the system's store
    /// is not asked. No purpose and no name is asked for: App Attest's certificates carry none.
    ///
    /// Throws `.untrusted`, then `.notYetValid` or `.expired` for the certificate nearest to the
    /// anchor that is.
    package func path(
        through intermediates: [X509Certificate],
        to anchors: [X509Certificate],
        at time: UnixTime
    ) throws(X509CertificateError) -> [X509Certificate] {
        let path = try path(through: intermediates, to: anchors)
        for certificate in path.reversed() {
            if let fault = certificate.fault(at: time) { throw fault }
        }
        return path
    }

    /// The path whatever its dates, by the rules of RFC 5280 §6.1 for what is judged:
    ///
    /// - an issuer is the first certificate whose subject is the name of the issuer and whose key
    ///   identifier and serial number are those that the certificate names, an anchor before an
    ///   intermediate; what an anchor needs comes from the anchors alone;
    /// - the path ends at an anchor that is its own issuer, whose signature is not verified: it is
    ///   trusted as it is;
    /// - every certificate's extensions can be read, and its critical ones are known;
    /// - issuers are authorities, may sign certificates, and stand within their path length;
    /// - every key is on P-256 or P-384, and each signature is one of the issuer's: Apple uses no
    ///   other curves.
    func path(
        through intermediates: [X509Certificate],
        to anchors: [X509Certificate]
    ) throws(X509CertificateError) -> [X509Certificate] {
        guard intermediates.count <= Self.pathCandidatesMax, anchors.count <= Self.pathCandidatesMax
        else { throw X509CertificateError(.untrusted, "too many certificates") }
        let path = try candidates(through: intermediates, to: anchors)
        try Self.checkUses(path)
        for (place, certificate) in path.enumerated() where certificate.ecKey == nil {
            throw X509CertificateError(
                .untrusted,
                "the key of certificate \(place) is not on P-256 or P-384"
            )
        }
        for (place, (certificate, issuer)) in zip(path, path.dropFirst()).enumerated() {
            // RFC 5280 §4.1.1.2: the algorithm outside is the one that is signed.
            guard certificate.algorithms.inner == certificate.algorithms.outer,
                certificate.isSigned(byKeyOf: issuer)
            else {
                throw X509CertificateError(
                    .untrusted,
                    "certificate \(place) is not signed by its issuer"
                )
            }
        }
        return path
    }

    /// The certificates from this one to an anchor by their names alone. Each step takes another
    /// certificate, so there is an end.
    private func candidates(
        through intermediates: [X509Certificate],
        to anchors: [X509Certificate]
    ) throws(X509CertificateError) -> [X509Certificate] {
        var path = [self]
        var last = (certificate: self, isAnchor: false)
        while try !last.certificate.isIssued(by: last.certificate) {
            var others = anchors.map { (certificate: $0, isAnchor: true) }
            if !last.isAnchor {
                others += intermediates.map { (certificate: $0, isAnchor: false) }
            }
            others.removeAll { other in path.contains { $0.der == other.certificate.der } }
            guard let next = try last.certificate.issuer(among: others) else {
                throw X509CertificateError(
                    .untrusted,
                    "the issuer of certificate \(path.count - 1) is missing"
                )
            }
            path.append(next.certificate)
            last = next
        }
        guard let anchor = anchors.first(where: { $0.der == last.certificate.der }) else {
            throw X509CertificateError(.untrusted, "the root is no anchor")
        }
        path[path.count - 1] = anchor
        return path
    }

    /// The first of these that is this certificate's issuer.
    private func issuer(
        among others: [(certificate: X509Certificate, isAnchor: Bool)]
    ) throws(X509CertificateError) -> (certificate: X509Certificate, isAnchor: Bool)? {
        for other in others where try isIssued(by: other.certificate) { return other }
        return nil
    }

    /// Whether a certificate is the issuer by all that this certificate names of its issuer.
    private func isIssued(by issuer: X509Certificate) throws(X509CertificateError) -> Bool {
        guard self.issuer == issuer.subject else { return false }
        let (named, own) = (try authority, try issuer.keyIdentifier)
        if let key = named.key, let own, key != own { return false }
        if let serial = named.serial, serial != issuer.serial { return false }
        if let name = named.issuer, name != issuer.issuer { return false }
        return true
    }

    private static func checkUses(_ path: [X509Certificate]) throws(X509CertificateError) {
        var intermediatesBelow = 0
        for (place, certificate) in path.enumerated() {
            let use = try certificate.use
            guard place > 0 else { continue }
            guard use.isAuthority, use.maySignCertificates else {
                throw X509CertificateError(.untrusted, "certificate \(place) is no authority's")
            }
            if let limit = use.pathLength, intermediatesBelow > limit {
                throw X509CertificateError(
                    .untrusted,
                    "the path below certificate \(place) is longer than it may be"
                )
            }
            if certificate.issuer != certificate.subject { intermediatesBelow += 1 }
        }
    }
}

// What the extensions say about a certificate's place in a path.
extension X509Certificate {
    private static let subjectKeyIdentifier = OID("2.5.29.14")
    private static let keyUsage = OID("2.5.29.15")
    private static let basicConstraints = OID("2.5.29.19")
    private static let nameConstraints = OID("2.5.29.30")
    private static let authorityKeyIdentifier = OID("2.5.29.35")

    /// The allowed uses of a certificate.
    private struct Use {
        var isAuthority = false
        var pathLength: Int?
        /// No keyUsage allows every use.
        var maySignCertificates = true
    }

    /// The uses that the extensions allow. Throws `.untrusted` for a critical extension that is
    /// unknown, for any that occurs twice, for a known one that can't be read, and for limits of
    /// names, which this code does not judge.
    private var use: Use {
        get throws(X509CertificateError) {
            let known = [Self.basicConstraints.content, Self.keyUsage.content]
            guard extensions.allSatisfy({ !$0.isCritical || known.contains($0.oid) }) else {
                throw X509CertificateError(.untrusted, "a critical extension is not known")
            }
            // RFC 5280 §4.2
            guard Set(extensions.map(\.oid)).count == extensions.count else {
                throw X509CertificateError(.untrusted, "an extension is there twice")
            }
            guard values(of: Self.nameConstraints).isEmpty else {
                throw X509CertificateError(.untrusted, "limits of names are not known")
            }
            var use = Use()
            if let found = try value(of: Self.basicConstraints, Self.constraints) {
                (use.isAuthority, use.pathLength) = found
            }
            if let found = try value(of: Self.keyUsage, Self.signsCertificates) {
                use.maySignCertificates = found
            }
            return use
        }
    }

    /// RFC 5280 §4.2.1.9: `SEQUENCE { BOOLEAN cA DEFAULT FALSE, INTEGER pathLen OPTIONAL }`.
    private static func constraints(
        _ cursor: inout DERCursor,
        _ der: Span<UInt8>
    ) throws(DERError) -> (Bool, Int?) {
        var sequence = DERCursor(try cursor.next(.sequence, in: der))
        var isAuthority = false
        if !sequence.isAtEnd {
            let start = sequence
            let element = try sequence.next(in: der)
            if element.tag == .boolean, element.content.count == 1 {
                isAuthority = der[element.content.lowerBound] != 0
            } else {
                sequence = start
            }
        }
        let length = sequence.isAtEnd ? nil : try sequence.smallInteger(in: der)
        try sequence.finish()
        return (isAuthority, length)
    }

    /// RFC 5280 §4.2.1.3: keyCertSign is bit 5 of a BIT STRING that has one bit at least.
    private static func signsCertificates(
        _ cursor: inout DERCursor,
        _ der: Span<UInt8>
    ) throws(DERError) -> Bool {
        let content = try cursor.next(.bitString, in: der)
        let bits = der.copy(content)
        guard bits.count >= 2, bits[0] < 8, bits.dropFirst().contains(where: { $0 != 0 }) else {
            throw DERError(.truncated, at: content.lowerBound)
        }
        // X.690 §11.2.1: unused bits are zero.
        guard bits[bits.count - 1] & ((1 << bits[0]) - 1) == 0 else {
            throw DERError(.badInteger, at: content.lowerBound)
        }
        return bits[1] & 0x04 != 0
    }

    /// RFC 5280 §4.2.1.2: the certificate's own key identifier.
    var keyIdentifier: [UInt8]? {
        get throws(X509CertificateError) {
            try value(of: Self.subjectKeyIdentifier) { cursor, der throws(DERError) in
                der.copy(try cursor.next(.octetString, in: der))
            }
        }
    }

    /// What a certificate says about its issuer besides the name.
    private struct Authority {
        var key: [UInt8]?
        var issuer: CertificateName?
        var serial: [UInt8]?
    }

    /// RFC 5280 §4.2.1.1: `SEQUENCE { [0] key, [1] names, [2] serial }`, all optional.
    private var authority: Authority {
        get throws(X509CertificateError) {
            let found = try value(of: Self.authorityKeyIdentifier) { cursor, der throws(DERError) in
                var authority = Authority()
                var sequence = DERCursor(try cursor.next(.sequence, in: der))
                while !sequence.isAtEnd {
                    let element = try sequence.next(in: der)
                    switch element.tag {
                    case .implicit(0): authority.key = der.copy(element.content)
                    case .explicit(1):
                        authority.issuer = try Self.directoryName(element.content, der)
                    case .implicit(2): authority.serial = der.copy(element.content)
                    default: throw DERError(.unexpectedTag, at: element.content.lowerBound)
                    }
                }
                return authority
            }
            return found ?? Authority()
        }
    }

    /// The first directory name among general names, `[4] EXPLICIT Name`.
    private static func directoryName(
        _ names: Range<Int>,
        _ der: Span<UInt8>
    ) throws(DERError) -> CertificateName? {
        var cursor = DERCursor(names)
        while !cursor.isAtEnd {
            let element = try cursor.next(in: der)
            guard element.tag == .explicit(4) else { continue }
            var inner = DERCursor(element.content)
            let name = try CertificateName(&inner, in: der)
            try inner.finish()
            return name
        }
        return nil
    }

    /// The whole value of an extension; `nil` when the certificate does not have it.
    private func value<Value>(
        of oid: OID,
        _ read: (inout DERCursor, Span<UInt8>) throws(DERError) -> Value
    ) throws(X509CertificateError) -> Value? {
        let values = values(of: oid)
        guard let bytes = values.first else { return nil }
        guard values.count == 1 else {
            throw X509CertificateError(.untrusted, "extension \(oid) is there twice")
        }
        do throws(DERError) {
            var cursor = DERCursor(0..<bytes.count)
            let value = try read(&cursor, ContiguousArray(bytes).span)
            try cursor.finish()
            return value
        } catch {
            throw X509CertificateError(
                .untrusted,
                "extension \(oid) can't be read: \(error.reason.rawValue) at \(error.offset)"
            )
        }
    }
}
