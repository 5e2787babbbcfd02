import Rules

/// Proofs that are too old. They are made once and sent again and again, since a refused proof uses
/// nothing up.
struct StaleSupply {
    /// With challenges: the reserved devices, which sign them. Without: devices with a reserved
    /// counter.
    let deviceCount: Int
    private let usesChallenges: Bool
    /// A challenge that waits until it expires, and when it does.
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

    /// Whether proofs with a challenge of another start must still be made.
    var wantsChallenge: Bool { deviceCount > 0 && ofAnotherStart.isEmpty }

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

/// Requests that were admitted, to be sent again.
struct ReplayMemory {
    /// A request, and its key's place in the rollout.
    private var requests: [(message: Message, bucket: Bucket?)] = []
    private var place = 0
    private var turn: UInt64 = 0

    /// The most that are kept; the oldest is dropped first.
    private static let countMax = 4096

    mutating func keep(_ message: Message, _ bucket: Bucket?) {
        guard requests.count == Self.countMax else { return requests.append((message, bucket)) }
        requests[place] = (message, bucket)
        place = (place + 1) % Self.countMax
    }

    /// One of the requests, older and newer ones in turn; `nil` without one.
    mutating func any() -> (message: Message, bucket: Bucket?)? {
        guard !requests.isEmpty else { return nil }
        turn += 1
        return requests[Int(Scatter.word(turn) % UInt64(requests.count))]
    }
}
