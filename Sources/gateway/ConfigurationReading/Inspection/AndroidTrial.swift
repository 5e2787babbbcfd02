internal import AppAttest
internal import Encodings
internal import KeyAttestation
package import Signatures

/// `verify android`: a chain of key attestation judged as the gateway judges one, at a given time,
/// and with it, where they are given, a message and its signature by the attested key.
package struct AndroidTrial: Sendable {
    /// The options as they were typed.
    package struct Options: Sendable {
        package var app = ""
        /// Without one, every app is refused.
        package var signers: [String] = []
        package var challenge = ""
        package var at = ""
        /// The content of the file with the status list; without one, no certificate is revoked.
        package var status: [UInt8]?
        /// The content of the file that replaces Google's roots.
        package var root: [UInt8]?
        /// The JSON object that changes the policy.
        package var policy: String?
        package var message: String?
        package var signature: String?

        package init() {}
    }

    private let app: ExpectedAndroidApp
    private let challenge: [UInt8]
    private let time: UnixTime
    private let statusList: StatusList
    private let roots: [X509Certificate]
    private let signed: (message: [UInt8], signature: [UInt8])?

    /// A trial with these options; `now` is what the word stands for in a time.
    package init(_ options: Options, now: UnixTime) throws(UsageError) {
        guard !options.app.isEmpty else {
            throw UsageError("--app", "is empty; give the package name, such as com.example.shop")
        }
        var signers: Set<[UInt8]> = []
        for text in options.signers {
            guard let signer = Hex.decode(text.filter { $0 != ":" }), signer.count == 32 else {
                throw UsageError(
                    "--signer",
                    "\"\(text)\" is no SHA-256; give the 64 hexadecimal digits that apksigner or "
                        + "keytool prints for the signing certificate"
                )
            }
            signers.insert(signer)
        }
        app = ExpectedAndroidApp(
            package: options.app,
            signers: signers,
            policy: try options.policy.map(AndroidPolicyText.policy) ?? .standard
        )
        // A key can be made without a challenge, which is the empty one.
        challenge =
            options.challenge.isEmpty
            ? [] : try OptionText("--challenge-b64", options.challenge).bytes()
        time = try OptionText("--at", options.at).time(now: now)
        roots = try OptionText.roots(pem: options.root, otherwise: GoogleRoots.all)
        statusList = try options.status.map(Self.statusList) ?? .empty
        switch (options.message, options.signature) {
        case (nil, nil): signed = nil
        case (let message?, let signature?):
            signed = (
                message.isEmpty ? [] : try OptionText("--message-b64", message).bytes(),
                try OptionText("--signature-b64", signature).bytes()
            )
        case (nil, .some), (.some, nil):
            throw UsageError(
                "--message-b64",
                "is of use with --signature-b64 alone; give both or neither"
            )
        }
    }

    private static func statusList(_ json: [UInt8]) throws(UsageError) -> StatusList {
        do throws(StatusListError) {
            return try StatusList(json: json)
        } catch {
            throw UsageError(
                "--status",
                "\(error.detail); give the whole JSON text of Google's status list"
            )
        }
    }

    /// Judges a file: PEM, the leaf first.
    package func report(on pem: [UInt8]) -> TrialReport {
        let chain: [[UInt8]]
        do throws(X509CertificateError) {
            chain = try X509Certificate.ders(pem: String(decoding: pem, as: UTF8.self))
        } catch {
            return .refused(KeyAttestationRefusal.Reason.malformed.rawValue, error.detail)
        }
        let summary = ChainSummary(chain: chain, roots: roots)
        do throws(KeyAttestationRefusal) {
            let attestation = try UnverifiedKeyAttestation(chain: chain)
            return report(on: attestation)
                .adding(Facts.android(summary, attestation.description))
        } catch {
            return refused(error).adding(Facts.android(summary, nil))
        }
    }

    private func report(on attestation: UnverifiedKeyAttestation) -> TrialReport {
        let verified: VerifiedKeyAttestation
        do throws(KeyAttestationRefusal) {
            verified = try attestation.verified(
                challenge: challenge,
                app: app,
                roots: roots,
                statusList: statusList,
                at: time
            )
        } catch {
            return refused(error)
        }
        if let (message, signature) = signed,
            !verified.publicKey.isValidSignature(signature.span, message: message.span)
        {
            return .refused(
                AssertionRefusalReason.signatureMismatch.rawValue,
                "not signed by the attested key over this message"
            )
        }
        return .accepted(
            [
                .init("app", .string(app.package)), .init("chain", .string("ok")),
            ] + Facts.key(verified.publicKey) + [
                .init("attester_sha256", .string(Facts.hex(verified.attesterID)))
            ]
        )
    }

    private func refused(_ refusal: KeyAttestationRefusal) -> TrialReport {
        let report = TrialReport.refused(refusal.reason.rawValue, refusal.detail)
        guard refusal.reason.isOfChain else { return report.adding("chain", .string("ok")) }
        return report.adding([
            .init("chain", .string("refused")), .init("why", .string(refusal.reason.rawValue)),
        ])
    }
}

extension Facts {
    /// SHA-256 of the SubjectPublicKeyInfo of the authorities that are known. The last two sign
    /// keys that are made by software, and their private keys are public.
    private static let authorities = [
        "feb2ea7551ee316ed4bb443c8293b884dbfdea40b603ee3e4f4a897e4580fbae": "rsa",
        "3ee44512a1af2beb39c889490c60ea3f82e43f5d5a5532f5ab9419f676cd07ec": "ec2026",
        "d5100c7942ef2e8310dc30ef82729680cf48d690735c3f68179a33c7c370f286": "software",
        "f2c4746f545946c100e72297f8f946344d7052f03a2f694221f9c893b0e6f711": "software",
    ]

    /// What a chain and its description say, whether they are believed or not.
    static func android(
        _ chain: ChainSummary,
        _ description: KeyDescription?
    ) -> [JSONValue.Member] {
        let hardware = description?.hardwareEnforced
        let software = description?.softwareEnforced
        let root = chain.rootKeyDigest.map { authorities[hex($0)] ?? "other" }
        var members: [JSONValue.Member] = [
            .init("root", .text(root)),
            .init("provisioning", .text(chain.provisioning?.rawValue)),
            .init("provisioning_info", provisioningInfo(chain)),
            .init("serials_hex", .array(chain.serials.map { .text($0?.description) })),
            .init("attestation_version", .optional(description?.attestationVersion)),
            .init("security_level", .text(description?.attestationLevel.word)),
            .init("keymint_version", .optional(description?.keyMintVersion)),
            .init("keymint_level", .text(description?.keyMintLevel.word)),
            .init("verified_boot_state", .text(hardware?.rootOfTrust?.state.word)),
            .init("device_locked", hardware?.rootOfTrust.map { .bool($0.isLocked) } ?? .null),
            .init("verified_boot_key_hex", .text(hardware?.rootOfTrust.map { hex($0.bootKey) })),
            .init("verified_boot_hash_hex", .text((hardware?.rootOfTrust?.bootHash).map(hex))),
            .init("os_version", .optional(hardware?.osVersion)),
            .init("os_patch_level", .optional(hardware?.osPatchLevel)),
            .init("vendor_patch_level", .optional(hardware?.vendorPatchLevel)),
            .init("boot_patch_level", .optional(hardware?.bootPatchLevel)),
            .init("packages", packages(software?.apps)),
            .init("signers_hex", .list(software?.apps?.signers.map { .string(hex($0)) })),
            .init("key", key(chain, hardware)),
            .init("purposes", .list(hardware?.purposes?.sorted().map { .number($0) })),
            .init("digests", .list(hardware?.digests?.sorted().map { .number($0) })),
            .init("origin", .text(hardware?.origin?.word)),
            .init(
                "module_hash_hex",
                .text((software?.moduleHash ?? hardware?.moduleHash).map(hex))
            ),
        ]
        let limits =
            limits(software?.dates, "softwareEnforced")
            + limits(hardware?.dates, "hardwareEnforced")
        if !limits.isEmpty { members.append(.init("limits", .object(limits))) }
        let quirks = quirks(chain, description)
        if !quirks.isEmpty { members.append(.init("quirks", .array(quirks.map { .string($0) }))) }
        return members
    }

    /// Tags with a set, by the names of their fields.
    private static let sets: [UInt32: String] = [
        1: "purposes", 4: "blockModes", 5: "digests", 6: "paddings", 203: "mgfDigests",
    ]

    /// What a strict reader would stumble over.
    private static func quirks(_ chain: ChainSummary, _ description: KeyDescription?) -> [String] {
        var found: [String] = []
        if let software = description?.softwareEnforced {
            found += quirks(software.oddities, "softwareEnforced")
            if software.rootOfTrust != nil { found.append("rootOfTrust in softwareEnforced") }
            if software.origin != nil { found.append("origin in softwareEnforced") }
        }
        if let hardware = description?.hardwareEnforced {
            found += quirks(hardware.oddities, "hardwareEnforced")
            if hardware.oddities.hasCreationDate {
                found.append("creationDateTime in hardwareEnforced")
            }
            if let byte = hardware.rootOfTrust?.lockedByte, byte != 0, byte != 0xFF {
                found.append("BOOLEAN 0x\(hex([byte]))")
            }
            found += quirk(hardware.osPatchLevel, digits: 6, "os")
            found += quirk(hardware.vendorPatchLevel, digits: 8, "vendor")
            found += quirk(hardware.bootPatchLevel, digits: 8, "boot")
        }
        if chain.hasMalformedProvisioningInfo { found.append("provisioningInfo can't be read") }
        return found
    }

    private static func quirks(_ oddities: ListOddities, _ side: String) -> [String] {
        (oddities.hasUnsortedTags ? ["\(side): tags not in order"] : [])
            + oddities.unsortedSets.map { "\(sets[$0] ?? String($0)): SET not in order" }
    }

    /// A patch level with other digits than those of its form.
    private static func quirk(_ level: Int64?, digits: Int, _ name: String) -> [String] {
        guard let level, String(level).count != digits else { return [] }
        return ["\(name) patch level \(level)"]
    }

    private static func packages(_ apps: AttestedApps?) -> JSONValue {
        .list(
            apps?.packages.map {
                .object([.init("name", .string($0.name)), .init("version", .number($0.version))])
            }
        )
    }

    private static func provisioningInfo(_ chain: ChainSummary) -> JSONValue {
        guard let info = chain.provisioningInfo else { return .null }
        return .object([
            .init(
                "certificates_issued_30_days",
                .optional(info.certificatesIssued.flatMap { Int64(exactly: $0) })
            ),
            .init("map", .object(info.pairs.map { .init(text($0.key), json($0.value)) })),
        ])
    }

    private static func text(_ key: CBORValue) -> String {
        switch key {
        case .unsigned(let number): String(number)
        case .text(let text): text
        default: hex(key.encoded)
        }
    }

    /// What is seen in genuine maps; anything else in the hexadecimal of its bytes.
    private static func json(_ value: CBORValue) -> JSONValue {
        switch value {
        case .unsigned(let number) where number <= Int64.max: .number(Int64(number))
        case .text(let text): .string(text)
        case .simple(20): .bool(false)
        case .simple(21): .bool(true)
        default: .string(hex(value.encoded))
        }
    }

    private static func key(_ chain: ChainSummary, _ hardware: AuthorizationList?) -> JSONValue {
        var members: [JSONValue.Member] = [
            .init("algorithm", .text(chain.leafKeyAlgorithm)),
            .init("curve", .text(chain.leafCurve)),
            .init("size", .optional(hardware?.keySize)),
        ]
        if let key = chain.leafKey {
            members.append(.init("public_key_x963_b64", .string(Base64.text(key.x963))))
        }
        return .object(members)
    }

    private static func limits(_ dates: KeyDates?, _ side: String) -> [JSONValue.Member] {
        [
            ("activeDateTime", dates?.active),
            ("originationExpireDateTime", dates?.originationExpire),
            ("usageExpireDateTime", dates?.usageExpire),
        ].compactMap { name, date in date.map { .init("\(name) (\(side))", .number($0)) } }
    }
}

extension JSONValue {
    fileprivate static func optional(_ number: Int64?) -> JSONValue {
        number.map(JSONValue.number) ?? .null
    }

    fileprivate static func list(_ values: [JSONValue]?) -> JSONValue {
        values.map(JSONValue.array) ?? .null
    }
}
