/// Proofs that are too old, made once and sent again and again: what is refused uses nothing up.
struct StaleSupply {
    /// With challenges: the devices set aside, which sign them. Without: devices with a reserved
    /// counter.
    private let deviceCount: Int
    private let usesChallenges: Bool
    /// A challenge that is kept until it has expired, and when that is.
    private(set) var aging: (text: [UInt8], expired: UInt64)?
    private(set) var ofAnotherStart: [ProofTexts] = []
    private(set) var expired: [ProofTexts] = []
    private var reserved: [Int: ProofTexts] = [:]
    private var turn = 0

    /// Devices whose reserved counter is used.
    private static let reservedMax = 256

    init(usesChallenges: Bool, _ setAside: Int) {
        self.usesChallenges = usesChallenges
        deviceCount = setAside
    }

    /// Whether proofs with a challenge of another start are still to be made.
    var wantsChallenge: Bool { deviceCount > 0 && ofAnotherStart.isEmpty }
    /// How many devices sign challenges that are no good.
    var signerCount: Int { deviceCount }

    mutating func take(ofAnotherStart proofs: [ProofTexts], aging text: [UInt8], expired: UInt64) {
        ofAnotherStart = proofs
        aging = (text, expired)
    }

    mutating func take(expired proofs: [ProofTexts]) {
        expired = proofs
        aging = nil
    }

    /// A stale request that can be sent now; `nil` while none can.
    ///
    /// - `sign`: makes a proof with the reserved counter of a device.
    mutating func next(
        _ devices: DeviceSet,
        sign: (Int) -> ProofTexts
    ) -> (sending: Sending, proof: ProofTexts)? {
        turn += 1
        if usesChallenges {
            if !expired.isEmpty, turn % 2 == 0 {
                return (.staleExpired, expired[turn / 2 % expired.count])
            }
            guard !ofAnotherStart.isEmpty else { return nil }
            return (.staleEpoch, ofAnotherStart[turn % ofAnotherStart.count])
        }
        let count = min(devices.count, Self.reservedMax)
        for step in 0..<count {
            let device = (turn + step) % count
            guard devices.isReservedOvertaken(device) else { continue }
            let proof = reserved[device] ?? sign(device)
            reserved[device] = proof
            return (.staleCounter, proof)
        }
        return nil
    }
}
