package import HTTPWire

/// What a refusal tells the rule's guard about the refused install.
package enum GuardEvidence: Sendable {
    /// The app has a fault, and its next try fails too.
    case broken
    /// An app that works gets it now and then, and its next try passes. It counts against the rule
    /// when no request of the install passes.
    case retried
    /// It says nothing about the app: the sender is unknown, the device is meant to be refused, or
    /// the fault is the gateway's. If these counted, the clients that the rule keeps out could make
    /// its guard fall.
    case none
}

extension Refusal {
    package var guardEvidence: GuardEvidence {
        switch self {
        case .assertionMalformed, .signedFieldRepeated, .digestMissing, .digestMismatch,
            .clientDataAmbiguous, .signatureMismatch, .appMismatch, .environmentMismatch,
            .categoryRefused, .versionRefused, .contentTooLarge, .deviceTokenMissing,
            .deviceTokenMalformed, .proofMissing, .proofMalformed, .proofInvalid:
            .broken
        case .assertionMissing, .challengeMissing, .challengeUnknown, .challengeExpired,
            .challengeSpent, .counterReplayed, .deviceTokenUsed, .sessionUnknown, .sessionExpired,
            .sessionReplayed, .sessionMismatch, .sessionRefused, .proofExpired, .proofSpent:
            .retried
        case .keyUnknown, .keyExpired, .keyRevoked, .riskExceeded, .riskUnknown, .deviceFlagged,
            .deviceThrottled, .deviceCheckUnavailable, .unsupported, .preflight,
            .proofRefused, .proofThrottled, .proofUnavailable, .addressThrottled, .addressHeld,
            .keyHeld, .storeUnavailable, .challengesExhausted,
            .heldFull, .spillFailed, .contentUnseen, .noRule:
            .none
        // About attestations, and about calls of the gateway's own endpoints.
        case .attestationMalformed, .requestMalformed, .certificateUntrusted, .certificateExpired,
            .nonceMismatch, .keyIDMismatch, .accessControlMismatch, .counterNotZero,
            .receiptRefused, .certificateRevoked, .keyUnsuitable, .hardwareRefused, .bootRefused,
            .appUnknown, .signerMismatch, .provisioningRefused, .patchLevelRefused,
            .attesterThrottled, .statusListUnavailable, .enrolmentThrottled, .enrolmentNotYet:
            .none
        }
    }
}

extension IPAddress {
    /// The 4 or 16 bytes in network order.
    package var bytes: [UInt8] {
        func bytes(_ value: UInt64, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt64((count - 1 - $0) * 8)) }
        }
        switch self {
        case .v4(let address): return bytes(UInt64(address), 4)
        case .v6(let high, let low): return bytes(high, 8) + bytes(low, 8)
        }
    }
}
