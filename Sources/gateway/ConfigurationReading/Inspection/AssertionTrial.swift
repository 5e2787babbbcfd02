internal import AppAttest
internal import Cryptography
internal import Encodings

/// `verify assertion`: judges an assertion against the attested key.
package struct AssertionTrial: Sendable {
    /// The options as they were typed.
    package struct Options: Sendable {
        package var appIDs: [String] = []
        package var publicKey = ""
        package var previousCounter: UInt32 = 0
        package var clientDataHash: String?
        /// The client data itself, instead of its hash.
        package var clientData: [UInt8]?
        /// Whether to look for a client's mistake with which it would verify. It never changes the
        /// verdict.
        package var diagnoses = false

        package init() {}
    }

    private let apps: [String]
    private let key: P256PublicKey
    private let stored: SignCounter
    private let clientDataHash: [UInt8]
    private let clientData: [UInt8]?
    private let diagnoses: Bool

    package init(_ options: Options) throws(UsageError) {
        apps = try OptionText.appIDs(options.appIDs)
        key = try OptionText("--public-key", options.publicKey).publicKey()
        stored = SignCounter(rawValue: options.previousCounter)
        switch (options.clientDataHash, options.clientData) {
        case (let hash?, nil): clientDataHash = try OptionText("--client-data-hash", hash).bytes()
        case (nil, let data?): clientDataHash = SHA256.digest(of: data).array
        case (nil, nil), (.some, .some):
            throw UsageError(
                "--client-data-hash",
                "give either it or --client-data FILE, one of the two"
            )
        }
        clientData = options.clientData
        diagnoses = options.diagnoses
    }

    /// Judges an object.
    package func report(on bytes: [UInt8]) -> TrialReport {
        do throws(AssertionRefusal) {
            let assertion = try UnverifiedAssertion(bytes: bytes)
            let report = report(on: assertion)
            guard diagnoses else { return report }
            return report.adding("diagnosis", Facts.diagnosis(mistake(in: assertion)))
        } catch {
            let report = TrialReport.refused(error.reason.rawValue, error.detail)
            return diagnoses ? report.adding("diagnosis", .array([])) : report
        }
    }

    private func report(on assertion: UnverifiedAssertion) -> TrialReport {
        // Of several apps the one that it claims. If it claims none of them, the steps fail in
        // their order with any app.
        let id = apps.first { AppIDHash(appID: $0) == assertion.appIDHash } ?? apps[0]
        do throws(AssertionRefusal) {
            let verified = try assertion.verified(
                clientDataHash: clientDataHash.span,
                key: key,
                app: AppIDHash(appID: id)
            )
            try verified.checkCounter(after: stored)
            return .accepted(
                [.init("app_id", .string(id))] + Facts.key(key) + [
                    .init("counter", .number(Int64(verified.counter.rawValue))),
                    .init("previous_counter", .number(Int64(stored.rawValue))),
                    .init("flags", .string(Facts.flags(verified.flags))),
                ] + Facts.build(verified.extensions)
            )
        } catch {
            return .refused(error.reason.rawValue, error.detail)
        }
    }

    private func mistake(in assertion: UnverifiedAssertion) -> ClientMistake? {
        guard let clientData else {
            return AssertionDiagnosis.mistake(
                in: assertion,
                clientDataHash: clientDataHash,
                key: key
            )
        }
        return AssertionDiagnosis.mistake(in: assertion, clientData: clientData, key: key)
    }
}
