internal import Encodings

extension PlainCertificate {
    /// Built and judged as OpenSSL does it, with RFC 5280 §6.1 for what is judged:
    ///
    /// - an issuer is the first certificate whose subject is the name of the issuer and whose key
    ///   identifier and serial number are those that the certificate names, an anchor before an
    ///   intermediate; what an anchor needs comes from the anchors alone;
    /// - the path ends at an anchor that is its own issuer, whose signature is not verified: it is
    ///   trusted as it is;
    /// - every certificate's extensions can be read, and its critical ones are known;
    /// - issuers are authorities, may sign certificates, and stand within their path length;
    /// - each signature is one of the issuer's key.
    func path(
        through intermediates: [PlainCertificate],
        to anchors: [PlainCertificate]
    ) throws(X509CertificateError) -> [CertificatePlace] {
        let path = try candidates(through: intermediates, to: anchors)
        var intermediatesBelow = 0
        for (index, step) in path.enumerated() {
            let use = try step.certificate.use
            if index > 0 {
                guard use.isAuthority, use.maySignCertificates else {
                    throw X509CertificateError(.untrusted, "an issuer is no authority")
                }
                if let limit = use.pathLength, intermediatesBelow > limit {
                    throw X509CertificateError(.untrusted, "the path is longer than it may be")
                }
                if !step.certificate.isSelfIssued { intermediatesBelow += 1 }
            }
        }
        for (step, issuer) in zip(path, path.dropFirst()) {
            guard let key = issuer.certificate.key, step.certificate.isSigned(by: key) else {
                throw X509CertificateError(.untrusted, "a certificate's signature is not valid")
            }
        }
        return path.map(\.place)
    }

    /// A certificate of a path.
    private struct Step {
        let certificate: PlainCertificate
        let place: CertificatePlace

        /// What an anchor needs comes from the anchors.
        var isAnchor: Bool {
            if case .anchor = place { true } else { false }
        }
    }

    /// The certificates from this one to an anchor by their names alone. Each step takes another
    /// certificate, so there is an end.
    private func candidates(
        through intermediates: [PlainCertificate],
        to anchors: [PlainCertificate]
    ) throws(X509CertificateError) -> [Step] {
        var path = [Step(certificate: self, place: .leaf)]
        while let last = path.last {
            let subject = last.certificate
            if try subject.isIssued(by: subject) {
                guard let anchor = anchors.firstIndex(where: { $0.der == subject.der }) else {
                    throw X509CertificateError(.untrusted, "the root is no anchor")
                }
                path[path.count - 1] = Step(certificate: subject, place: .anchor(anchor))
                return path
            }
            var others = anchors.indices.map { Step(certificate: anchors[$0], place: .anchor($0)) }
            if !last.isAnchor {
                others += intermediates.indices.map {
                    Step(certificate: intermediates[$0], place: .intermediate($0))
                }
            }
            others.removeAll { other in
                path.contains { $0.certificate.der == other.certificate.der }
            }
            guard let next = try subject.issuer(among: others) else {
                throw X509CertificateError(.untrusted, "an issuer is missing")
            }
            path.append(next)
        }
        return path
    }

    private var isSelfIssued: Bool { issuer == subject }

    /// The first of these that is this certificate's issuer.
    private func issuer(among steps: [Step]) throws(X509CertificateError) -> Step? {
        for step in steps where try isIssued(by: step.certificate) { return step }
        return nil
    }

    /// Whether a certificate is the issuer by all that this certificate names of its issuer.
    private func isIssued(by issuer: PlainCertificate) throws(X509CertificateError) -> Bool {
        guard self.issuer == issuer.subject else { return false }
        let (named, own) = (try authority, try issuer.ownIdentifier)
        if let key = named.key, let own, key != own { return false }
        if let serial = named.serial, serial != issuer.serial { return false }
        if let name = named.issuer, name != issuer.issuer { return false }
        return true
    }
}

// What the extensions say about a certificate's place in a path.
extension PlainCertificate {
    private static let subjectKeyIdentifier = OID("2.5.29.14").content
    private static let keyUsage = OID("2.5.29.15").content
    private static let basicConstraints = OID("2.5.29.19").content
    private static let nameConstraints = OID("2.5.29.30").content
    private static let authorityKeyIdentifier = OID("2.5.29.35").content

    /// The allowed uses of a certificate.
    private struct Use {
        var isAuthority = false
        var pathLength: Int?
        /// No keyUsage allows every use.
        var maySignCertificates = true
    }

    /// The uses that the extensions allow. Throws `.untrusted` for a critical extension that is
    /// unknown, for a known one that occurs twice or can't be read, and for limits of names, which
    /// this code does not judge.
    private var use: Use {
        get throws(X509CertificateError) {
            for entry in extensions where entry.isCritical {
                guard [Self.basicConstraints, Self.keyUsage].contains(entry.oid) else {
                    throw X509CertificateError(.untrusted, "a critical extension is not known")
                }
            }
            guard try value(Self.nameConstraints) == nil else {
                throw X509CertificateError(.untrusted, "limits of names are not known")
            }
            var use = Use()
            if let bytes = try value(Self.basicConstraints) {
                (use.isAuthority, use.pathLength) = try read(bytes, Self.constraints)
            }
            if let bytes = try value(Self.keyUsage) {
                use.maySignCertificates = try read(bytes, Self.signsCertificates)
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
        return bits[1] & 0x04 != 0
    }

    /// RFC 5280 §4.2.1.2: the certificate's own key identifier.
    var ownIdentifier: [UInt8]? {
        get throws(X509CertificateError) {
            guard let bytes = try value(Self.subjectKeyIdentifier) else { return nil }
            return try read(bytes) { cursor, der throws(DERError) in
                der.copy(try cursor.next(.octetString, in: der))
            }
        }
    }

    /// What a certificate says about its issuer besides the name.
    private struct Authority {
        var key: [UInt8]?
        var issuer: [UInt8]?
        var serial: [UInt8]?
    }

    /// RFC 5280 §4.2.1.1: `SEQUENCE { [0] key, [1] names, [2] serial }`, all optional.
    private var authority: Authority {
        get throws(X509CertificateError) {
            guard let bytes = try value(Self.authorityKeyIdentifier) else { return Authority() }
            return try read(bytes) { cursor, der throws(DERError) in
                var authority = Authority()
                var sequence = DERCursor(try cursor.next(.sequence, in: der))
                while !sequence.isAtEnd {
                    let element = try sequence.next(in: der)
                    switch element.tag {
                    case DERTag(bits: 0x80, number: 0): authority.key = der.copy(element.content)
                    case .explicit(1):
                        authority.issuer = try Self.directoryName(element.content, der)
                    case DERTag(bits: 0x80, number: 2): authority.serial = der.copy(element.content)
                    default: throw DERError(.unexpectedTag, at: element.content.lowerBound)
                    }
                }
                return authority
            }
        }
    }

    /// The first directory name among general names, `[4] EXPLICIT Name`.
    private static func directoryName(
        _ names: Range<Int>,
        _ der: Span<UInt8>
    ) throws(DERError) -> [UInt8]? {
        var cursor = DERCursor(names)
        while !cursor.isAtEnd {
            let element = try cursor.next(in: der)
            guard element.tag == .explicit(4) else { continue }
            var inner = DERCursor(element.content)
            let name = try name(&inner, in: der)
            try inner.finish()
            return name
        }
        return nil
    }

    /// The value of an extension; `nil` when the certificate does not have it.
    private func value(_ oid: [UInt8]) throws(X509CertificateError) -> [UInt8]? {
        let found = extensions.filter { $0.oid == oid }
        guard found.count <= 1 else {
            throw X509CertificateError(.untrusted, "an extension is there twice")
        }
        return found.first?.value
    }

    /// Reads the whole value of an extension.
    private func read<Value>(
        _ bytes: [UInt8],
        _ body: (inout DERCursor, Span<UInt8>) throws(DERError) -> Value
    ) throws(X509CertificateError) -> Value {
        do throws(DERError) {
            var cursor = DERCursor(0..<bytes.count)
            let value = try body(&cursor, ContiguousArray(bytes).span)
            try cursor.finish()
            return value
        } catch {
            throw X509CertificateError(.untrusted, "an extension can't be read")
        }
    }
}
