internal import AppAttest
internal import Cryptography
internal import Encodings
package import Signatures

/// `verify attestation`: judges an attestation like the gateway, at a given time.
package struct AttestationTrial: Sendable {
    /// The options as they were typed.
    package struct Options: Sendable {
        package var appIDs: [String] = []
        package var environments: [String] = []
        package var keyID = ""
        package var clientDataHash = ""
        package var at = ""
        /// Whether the access control list of a Mac is required even if the leaf names no system.
        package var isMacOS = false
        /// The content of the file that replaces Apple's roots.
        package var root: [UInt8]?
        /// The challenge, to find out how the app used it; never for the verdict.
        package var challenge: [UInt8]?

        package init() {}
    }

    private let apps: [ExpectedApp]
    private let keyID: KeyID
    private let clientDataHash: [UInt8]
    private let time: UnixTime
    private let roots: [X509Certificate]
    private let receiptRoots: [X509Certificate]
    private let challenge: [UInt8]?

    /// A trial with these options; `now` is the time that the word means.
    package init(_ options: Options, now: UnixTime) throws(UsageError) {
        var environments: Set<AttestationEnvironment> = []
        for text in options.environments {
            environments.insert(try OptionText("--environment", text).environment())
        }
        guard !environments.isEmpty else {
            throw UsageError("--environment", "is missing; use production or development")
        }
        apps = try OptionText.appIDs(options.appIDs).map {
            ExpectedApp(id: $0, environments: environments, isMacOS: options.isMacOS, builds: .any)
        }
        keyID = try OptionText("--key-id", options.keyID).keyID()
        clientDataHash = try OptionText("--client-data-hash", options.clientDataHash).bytes()
        time = try OptionText("--at", options.at).time(now: now)
        roots = try OptionText.roots(pem: options.root, otherwise: [AppleRoots.appAttestation])
        receiptRoots = try OptionText.roots(pem: options.root, otherwise: [AppleRoots.rootG3])
        challenge = options.challenge
    }

    /// Judges an object.
    package func report(on bytes: [UInt8]) -> TrialReport {
        do throws(AttestationRefusal) {
            let attestation = try UnverifiedAttestation(bytes: bytes)
            let report = report(on: attestation)
            guard let challenge else { return report }
            let mistake = AttestationDiagnosis.mistake(in: attestation, challenge: challenge)
            return report.adding("diagnosis", Facts.diagnosis(mistake))
        } catch {
            let report = TrialReport.refused(error.reason.rawValue, error.detail)
            return challenge == nil ? report : report.adding("diagnosis", .array([]))
        }
    }

    private func report(on attestation: UnverifiedAttestation) -> TrialReport {
        do throws(AttestationRefusal) {
            let verified = try attestation.verified(
                clientDataHash: clientDataHash.span,
                keyID: keyID,
                apps: apps,
                roots: roots,
                at: time
            )
            return .accepted(
                [
                    .init("app_id", .string(verified.app.id)),
                    .init("environment", .string(verified.environment.rawValue)),
                ] + Facts.key(verified.publicKey) + [
                    .init("counter", .number(Int64(verified.counter.rawValue))),
                    .init("flags", .string(Facts.flags(verified.flags))),
                ] + Facts.build(verified.extensions) + Facts.device(verified.details) + [
                    .init("root_sha256", .string(Facts.hex(verified.root.fingerprint.array))),
                    .init("receipt", receipt(in: verified)),
                ]
            )
        } catch {
            return .refused(error.reason.rawValue, error.detail)
        }
    }

    /// The receipt in the attestation, judged on its own: the attestation does not cover it, and it
    /// does not change the verdict. Its age is not checked.
    private func receipt(in attestation: VerifiedAttestation) -> JSONValue {
        do throws(ReceiptRefusal) {
            let receipt = try UnverifiedReceipt(bytes: attestation.receipt).verified(
                appIDs: [attestation.app.id],
                key: attestation.publicKey,
                roots: receiptRoots,
                freshness: nil
            )
            return TrialReport.accepted(Facts.receipt(receipt.fields)).json
        } catch {
            return TrialReport.refused(error.reason.rawValue, error.detail).json
        }
    }
}

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
                app: AppIDHash(appID: id),
                after: stored
            )
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
