internal import AppAttest
internal import Cryptography
internal import Encodings
public import Signatures

extension SoftwareKey {
    /// A receipt of this key: a CMS message in BER, as Apple's server gives it.
    ///
    /// - Parameters:
    ///   - kind: how it comes about.
    ///   - clientDataHash: what was handed to `attestKey`, for field 4.
    ///   - time: when it is made, for field 12. Field 21 is 90 days later, and field 19, in a
    ///     refreshed one, a day.
    ///   - damage: what is wrong with it.
    /// - Returns: the message, about 3 KiB.
    public func receipt(
        _ kind: ReceiptKind,
        clientDataHash: [UInt8],
        at time: UnixTime,
        damage: ReceiptDamage? = nil
    ) -> [UInt8] {
        let leaf = leaf(nonce: clientDataHash, at: time, by: device.authority, damage: nil)
        return receipt(
            kind,
            leaf: leaf,
            clientHash: clientDataHash,
            at: time,
            changes: ReceiptChanges(damage: damage)
        )
    }

    /// A receipt with other values in some fields, or without a field whose value is `nil`. It is
    /// for faults that ``ReceiptDamage`` has no name for.
    ///
    /// - fields: by the number of their type.
    /// - isOf2020: as Apple's server gave it from August to October 2020, with attributes that the
    ///   signature does not cover.
    package func receipt(
        _ kind: ReceiptKind,
        clientDataHash: [UInt8],
        at time: UnixTime,
        replacing fields: [UInt32: String?],
        isOf2020: Bool = false
    ) -> [UInt8] {
        let leaf = leaf(nonce: clientDataHash, at: time, by: device.authority, damage: nil)
        return receipt(
            kind,
            leaf: leaf,
            clientHash: clientDataHash,
            at: time,
            changes: ReceiptChanges(
                attributes: isOf2020 ? .unsigned : .none,
                fields: fields
            )
        )
    }

    func receipt(
        _ kind: ReceiptKind,
        leaf: X509Certificate,
        clientHash: [UInt8],
        at time: UnixTime,
        changes: ReceiptChanges
    ) -> [UInt8] {
        let damage = changes.damage
        let fields =
            fields(kind, leaf: leaf, clientHash: clientHash, at: time, damage)
            .filter { changes.fields[$0.type] == nil }
            + changes.fields.sorted { $0.key < $1.key }
            .compactMap { type, text in text.map { (type: type, value: Array($0.utf8)) } }
        let payload = DEREncoder.set(
            fields.map { field in
                DEREncoder.sequence([
                    DEREncoder.integer(field.type), DEREncoder.integer(1),
                    DEREncoder.octetString(field.value),
                ])
            }
        )
        let authority = damage == .untrustedRoot ? device.authority.stranger : device.authority
        let message = SignedMessage.signed(
            payload,
            by: authority.receiptSignerKey,
            signer: signer(of: authority, at: time, damage),
            others: [authority.receiptIssuer, authority.root],
            attributes: changes.attributes
        )
        switch damage {
        case .signature: return Self.withSignatureDamaged(message)
        case .trailingByte: return message + [0]
        default: return message
        }
    }

    /// The fields in the order of genuine receipts, which do not sort them.
    private func fields(
        _ kind: ReceiptKind,
        leaf: X509Certificate,
        clientHash: [UInt8],
        at time: UnixTime,
        _ damage: ReceiptDamage?
    ) -> [(type: UInt32, value: [UInt8])] {
        var fields: [(type: UInt32, value: [UInt8])] = []
        func add(_ type: UInt32, _ text: String) { fields.append((type, Array(text.utf8))) }
        let created = damage == .old ? time.advanced(bySeconds: -3_600) : time
        if case .refreshed(let metric) = kind { add(17, String(metric)) }
        let name = kind == .attest ? "ATTEST" : "RECEIPT"
        add(6, damage == .otherKind ? "ASSERT" : name)
        add(2, damage == .otherApp ? device.appID + ".other" : device.appID)
        if damage == .appIDTwice { add(2, device.appID) }
        fields.append((3, certificate(leaf, at: time, damage).der))
        fields.append((4, clientHash))
        // For Apple only; as long as a genuine one.
        fields.append((5, RandomBytes.make(count: 64)))
        add(7, device.environment == .production ? "production" : "sandbox")
        if damage != .creationTimeMissing { add(12, created.iso8601) }
        if kind != .attest { add(19, created.advanced(bySeconds: 86_400).iso8601) }
        add(21, created.advanced(bySeconds: 90 * 86_400).iso8601)
        return fields
    }

    private func certificate(
        _ leaf: X509Certificate,
        at time: UnixTime,
        _ damage: ReceiptDamage?
    ) -> X509Certificate {
        guard damage == .otherKey else { return leaf }
        return self.leaf(nonce: nil, at: time, by: device.authority, damage: .otherKeyCertified)
    }

    private func signer(
        of authority: SoftwareAuthority,
        at time: UnixTime,
        _ damage: ReceiptDamage?
    ) -> X509Certificate {
        guard damage == .signerUnmarked || damage == .signerExpired else {
            return authority.receiptSigner
        }
        let end = damage == .signerExpired ? time.advanced(bySeconds: -1) : authority.notAfter
        return CertificateBuilder(
            subject: .init(commonName: "Software Fraud Receipt Signing"),
            serial: 5,
            validity: authority.notBefore...end,
            isAuthority: false,
            extensions: damage == .signerUnmarked ? [] : [LeafExtensions.receiptSigner]
        ).signed(
            for: authority.receiptSignerKey,
            by: authority.receiptIssuerKey,
            issuer: authority.receiptIssuer
        )
    }

    /// Flips a bit in the last byte of the signature, which occurs once in the message.
    private static func withSignatureDamaged(_ message: [UInt8]) -> [UInt8] {
        var damaged = message
        do throws(SignedMessage.Failure) {
            let signature = try SignedMessage(ber: message.span).signature
            let starts = stride(from: message.count - signature.count, through: 0, by: -1)
            for start in starts where message[start...].starts(with: signature) {
                damaged[start + signature.count - 1] ^= 1
                return damaged
            }
        } catch {
            preconditionFailure("SoftwareKey: a message that was just made cannot be read")
        }
        preconditionFailure("SoftwareKey: the signature is not in the message")
    }
}

/// The origin of a receipt.
///
/// Frozen: another word in a receipt is malformed.
@frozen
public enum ReceiptKind: Hashable, Sendable {
    /// In an attestation: type ATTEST, without a risk metric.
    case attest
    /// From Apple's server, in exchange for an older one: type RECEIPT.
    ///
    /// `riskMetric` is about how many keys of the app the device has had attested within 30 days.
    case refreshed(riskMetric: UInt32)
}

/// How a receipt differs from the one that Apple's server would give.
struct ReceiptChanges {
    /// What is wrong with it.
    var damage: ReceiptDamage?
    var attributes = SignedMessage.SignedAttributes.none
    /// The values of fields by the number of their type; `nil` for a field that is left out.
    var fields: [UInt32: String?] = [:]
}
