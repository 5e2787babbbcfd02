import AppAttest
import Encodings
import EventLoops
import SoftwareAuthenticator

/// What an assertion covers besides the template of its request.
struct ToSign: Sendable {
    let counter: UInt32
    let content: Int
    /// Empty for none.
    let challenge: [UInt8]
}

/// Signs during the run, with keys that are made when they are first needed.
struct Signer {
    private let fleet: FleetDevices
    private var keys: [Int: SoftwareKey] = [:]
    private var mint: TokenMint?
    /// The number of assertions, and the nanoseconds for all of them.
    private(set) var count: UInt64 = 0
    private(set) var nanoseconds: UInt64 = 0

    /// - mint: makes the tokens of phones; `nil` where they show none.
    init(_ fleet: FleetDevices, _ mint: TokenMint?) {
        self.fleet = fleet
        self.mint = mint
    }

    /// Signs with a key of the fleet.
    mutating func sign(
        _ order: ToSign,
        device index: Int,
        of template: RequestTemplate
    ) -> ProofTexts {
        let start = MonotonicClock.nanoseconds
        var key = key(index)
        let proof = sign(order, with: &key, template)
        count += 1
        nanoseconds += MonotonicClock.nanoseconds - start
        return proof
    }

    /// Signs with a key that no gateway knows.
    mutating func signAsStranger(
        _ index: Int,
        _ challenge: [UInt8],
        of template: RequestTemplate
    ) -> ProofTexts {
        var key = fleet.stranger(index)
        return sign(ToSign(counter: 1, content: 0, challenge: challenge), with: &key, template)
    }

    private mutating func sign(
        _ order: ToSign,
        with key: inout SoftwareKey,
        _ template: RequestTemplate
    ) -> ProofTexts {
        let hash = template.hash(order.content, challenge: order.challenge)
        key.counter = SignCounter(rawValue: order.counter - 1)
        return ProofTexts(
            keyID: Base64.encode(key.keyID.bytes),
            assertion: key.assertionText(clientDataHash: hash),
            challenge: order.challenge,
            token: mint?.token(of: key, over: hash) ?? []
        )
    }

    private mutating func key(_ index: Int) -> SoftwareKey {
        if let key = keys[index] { return key }
        let key = fleet.key(index)
        keys[index] = key
        return key
    }

    /// Adds a token to a proof that was signed before the clock started. A token is good for
    /// minutes, so it is made when its request is due.
    mutating func addToken(
        device index: Int,
        content: Int,
        of template: RequestTemplate,
        to proof: inout ProofTexts
    ) {
        guard mint != nil else { return }
        let hash = template.hash(content, challenge: proof.challenge)
        let key = key(index)
        proof.token = mint?.token(of: key, over: hash) ?? []
    }
}

/// Assertions that were made before the clock started.
///
/// Each device of an event loop has an equal number of them, for its counters in a row: a block of
/// bytes for each device. One task makes the blocks of some devices, so a million keys are made
/// once and none is kept.
struct PreSigned: Sendable {
    /// The assertions to make.
    struct Order: Sendable {
        let fleet: FleetDevices
        let template: RequestTemplate
        /// The devices of the event loop, by their number in the fleet.
        let devices: [Int]
        let firstCounter: UInt32
        let perDevice: Int
        /// A challenge for each assertion, in the order of devices and then counters; empty for
        /// none.
        var challenges: [[UInt8]] = []

        var count: Int { devices.count * perDevice }

        /// The number of bytes of all assertions.
        var byteCount: Int { devices.count * keyIDCount + count * slotCount }
    }

    static let empty = PreSigned(perDevice: 0, goodUntil: 0, hasChallenges: false, blocks: [])

    /// Devices of one task.
    private static let taskDevices = 64
    /// Characters of a key id.
    private static let keyIDCount = 44
    /// An assertion's text, 192 characters at most, after its length, and a challenge.
    private static let assertionCount = 192
    private static let slotCount = 1 + assertionCount + RequestTemplate.challengeCount

    let perDevice: Int
    /// Until when they may be sent, on the monotonic clock.
    let goodUntil: UInt64
    private let hasChallenges: Bool
    private let blocks: [[UInt8]]

    /// Makes the assertions, on all cores.
    static func make(_ order: Order, goodUntil: UInt64 = .max) async -> PreSigned {
        let starts = stride(from: 0, to: order.devices.count, by: taskDevices)
        let parts = await withTaskGroup(of: (Int, [[UInt8]]).self) { group in
            for start in starts {
                group.addTask {
                    let end = min(start + taskDevices, order.devices.count)
                    return (start, (start..<end).map { block(order, $0) })
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        return PreSigned(
            perDevice: order.perDevice,
            goodUntil: goodUntil,
            hasChallenges: !order.challenges.isEmpty,
            blocks: parts.sorted { $0.0 < $1.0 }.flatMap(\.1)
        )
    }

    private static func block(_ order: Order, _ local: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(keyIDCount + order.perDevice * slotCount)
        var key = order.fleet.key(order.devices[local])
        key.counter = SignCounter(rawValue: order.firstCounter - 1)
        bytes += Base64.encode(key.keyID.bytes)
        for number in 0..<order.perDevice {
            let place = local * order.perDevice + number
            let challenge = place < order.challenges.count ? order.challenges[place] : []
            let content = contentIndex(local, number, of: order.template.contents.count)
            let hash = order.template.hash(content, challenge: challenge)
            let text = key.assertionText(clientDataHash: hash)
            precondition(text.count <= assertionCount, "PreSigned: a longer assertion")
            bytes.append(UInt8(text.count))
            bytes += text
            bytes += repeatElement(0, count: assertionCount - text.count)
            bytes += challenge
            bytes += repeatElement(0, count: RequestTemplate.challengeCount - challenge.count)
        }
        return bytes
    }

    /// The content that a device's n-th assertion covers.
    static func contentIndex(_ device: Int, _ number: Int, of count: Int) -> Int {
        (device + number) % count
    }

    /// A device's n-th assertion; `nil` when there are fewer.
    func proof(of device: Int, number: Int) -> ProofTexts? {
        guard (0..<perDevice).contains(number), device < blocks.count else { return nil }
        let bytes = blocks[device]
        let slot = Self.keyIDCount + number * Self.slotCount
        let challenge = slot + 1 + Self.assertionCount
        return ProofTexts(
            keyID: Array(bytes[..<Self.keyIDCount]),
            assertion: Array(bytes[(slot + 1)..<(slot + 1 + Int(bytes[slot]))]),
            challenge: hasChallenges ? Array(bytes[challenge..<(slot + Self.slotCount)]) : []
        )
    }
}

extension PreSigned.Order {
    /// What an event loop of a run needs.
    ///
    /// - needed: assertions, at least.
    init(_ plan: LoadPlan, loop: Int, _ needed: Int) {
        let free = plan.deviceCount(loop: loop) - plan.staleDeviceCount(loop: loop)
        let count = min(free, max(needed, 1))
        self.init(
            fleet: plan.devices,
            template: plan.template,
            devices: (0..<count).map { plan.fleetIndex($0, loop: loop) },
            firstCounter: plan.fleet.nextCounter + DeviceSet.counterGap,
            perDevice: (needed + count - 1) / count
        )
    }
}
