import AppAttest
import Cryptography
import Encodings
import KeyStore
import OutboundCalls
import SoftwareAuthenticator

/// Exchanges receipts for newer ones.
struct ReceiptService {
    private var keys: [P256PublicKey: (key: SoftwareKey, riskMetric: UInt32)] = [:]

    mutating func add(_ key: SoftwareKey, _ riskMetric: UInt32) {
        keys[key.publicKey] = (key, riskMetric)
    }

    mutating func forget(_ key: SoftwareKey) { keys[key.publicKey] = nil }

    /// Apple's answer (Apple, "Assessing fraud risk").
    ///
    /// - play: a receipt that is wrong, or `.proper`.
    func answer(
        _ body: [UInt8],
        at host: AppleHost,
        _ play: StandInPlay,
        _ now: UnixTime
    ) -> StandInAnswer {
        guard let bytes = Base64.decode(body.span),
            let receipt = try? UnverifiedReceipt(bytes: bytes)
        else { return StandInAnswer(400, "Bad payload") }
        // The field has "sandbox" for development.
        let isProduction = receipt.fields.environment == "production"
        guard host.environment == .test || (host.environment == .production) == isProduction else {
            return StandInAnswer(400, "Wrong environment")
        }
        guard let publicKey = receipt.fields.certificate.p256PublicKey,
            let (key, metric) = keys[publicKey]
        else { return StandInAnswer(404, "No data found") }
        if case .proper = play, let notBefore = receipt.fields.notBefore, now < notBefore {
            return StandInAnswer(304)
        }
        func receiptText(
            _ kind: ReceiptKind,
            _ damage: ReceiptDamage?,
            age: Int64
        ) -> StandInAnswer {
            let made = key.receipt(
                kind,
                clientDataHash: receipt.fields.clientHash ?? [],
                at: now.advanced(bySeconds: -age),
                damage: damage
            )
            return StandInAnswer(200, Base64.text(made))
        }
        switch play {
        case .receipt(let damage, let age):
            return receiptText(.refreshed(riskMetric: metric), damage, age: age)
        case .receiptOfAttestation: return receiptText(.attest, nil, age: 0)
        case .receiptAsSent: return StandInAnswer(200, Base64.text(bytes))
        case .proper, .slow, .drip, .status, .hang, .garbage, .cut, .long, .redirect:
            return receiptText(.refreshed(riskMetric: metric), nil, age: 0)
        }
    }
}
