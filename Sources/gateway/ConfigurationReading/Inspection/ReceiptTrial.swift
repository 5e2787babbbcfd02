internal import AppAttest
internal import Encodings
package import Signatures

/// `verify receipt`: judges a receipt by Apple's six checks, and by its own expiration.
///
/// The certificates are judged at the creation of the receipt, whatever ``Options/at`` says:
/// signers live for 13 months, and receipts are kept longer. Check 5, the age, is for receipts that
/// have just been obtained; ``Options/maxAge`` enables it. With ``Options/isRenewed`` the receipt
/// is judged like a renewed one from Apple's server.
package struct ReceiptTrial: Sendable {
    /// The options as they were typed.
    package struct Options: Sendable {
        package var appIDs: [String] = []
        /// Check 6; without it the receipt's own key is shown and not compared.
        package var publicKey: String?
        /// The time at which the receipt is judged; without it, its expiration is not judged.
        package var at: String?
        package var maxAge: String?
        /// Whether it must be a renewed one.
        package var isRenewed = false
        /// The required environment in field 7, for a renewed one.
        package var environment: String?
        /// The creation of the receipt that was sent, for a renewed one.
        package var newerThan: String?
        /// The content of the file that replaces Apple's root.
        package var root: [UInt8]?

        package init() {}
    }

    private let appIDs: [String]
    private let key: P256PublicKey?
    private let time: UnixTime?
    private let freshness: UnverifiedReceipt.Freshness?
    /// The exchange; `nil` where it is not checked.
    private let exchange: UnverifiedReceipt.Exchange?
    private let roots: [X509Certificate]

    /// A trial with these options; `now` is the time that the word means.
    package init(_ options: Options, now: UnixTime) throws(UsageError) {
        appIDs = try OptionText.appIDs(options.appIDs)
        key = try options.publicKey.map { text throws(UsageError) in
            try OptionText("--public-key", text).publicKey()
        }
        let time = try options.at.map { text throws(UsageError) in
            try OptionText("--at", text).time(now: now)
        }
        self.time = time
        if let text = options.maxAge {
            guard let time else {
                throw UsageError("--max-age", "says nothing without a time; give --at too")
            }
            freshness = UnverifiedReceipt.Freshness(
                now: time,
                secondsMax: try OptionText("--max-age", text).seconds()
            )
        } else {
            freshness = nil
        }
        exchange = try Self.exchange(options, freshness, now: now)
        roots = try OptionText.roots(pem: options.root, otherwise: [AppleRoots.rootG3])
    }

    private static func exchange(
        _ options: Options,
        _ freshness: UnverifiedReceipt.Freshness?,
        now: UnixTime
    ) throws(UsageError) -> UnverifiedReceipt.Exchange? {
        let given = [("--environment", options.environment), ("--newer-than", options.newerThan)]
        guard options.isRenewed else {
            if let (name, _) = given.first(where: { $0.1 != nil }) {
                throw UsageError(
                    name,
                    "says nothing of a receipt that was not renewed; give "
                        + "--renewed too"
                )
            }
            return nil
        }
        return UnverifiedReceipt.Exchange(
            environment: try options.environment.map { text throws(UsageError) in
                try OptionText("--environment", text).environment()
            },
            previousCreation: try options.newerThan.map { text throws(UsageError) in
                try OptionText("--newer-than", text).time(now: now)
            },
            freshness: freshness
        )
    }

    /// Judges an object.
    package func report(on bytes: [UInt8]) -> TrialReport {
        do throws(ReceiptRefusal) {
            let receipt = try UnverifiedReceipt(bytes: bytes)
            // Its own key instead of one to compare with.
            guard let key = key ?? receipt.fields.certificate.p256PublicKey else {
                return .refused(
                    ReceiptRefusal.Reason.malformed.rawValue,
                    "field 3 is not of a key on P-256"
                )
            }
            return report(on: try verified(receipt, key).fields, of: key)
        } catch {
            return .refused(error.reason.rawValue, error.detail)
        }
    }

    private func verified(
        _ receipt: UnverifiedReceipt,
        _ key: P256PublicKey
    ) throws(ReceiptRefusal) -> VerifiedReceipt {
        guard let exchange else {
            return try receipt.verified(
                appIDs: appIDs,
                key: key,
                roots: roots,
                freshness: freshness
            )
        }
        return try receipt.renewed(appIDs: appIDs, key: key, roots: roots, exchange: exchange)
            .receipt
    }

    private func report(on fields: ReceiptFields, of key: P256PublicKey) -> TrialReport {
        var isExpired: Bool?
        if let time, let expiration = fields.expirationTime {
            guard time <= expiration else {
                // Not among Apple's checks: after field 21 its server does not accept the receipt
                // any more.
                return .refused(
                    "receipt-expired",
                    "good to \(expiration.iso8601), judged at \(time.iso8601)"
                )
            }
            isExpired = false
        }
        return .accepted(
            Facts.receipt(fields) + [
                .init("expired", isExpired.map(JSONValue.bool) ?? .null)
            ] + Facts.key(key) + [.init("public_key_compared", .bool(self.key != nil))]
        )
    }
}
