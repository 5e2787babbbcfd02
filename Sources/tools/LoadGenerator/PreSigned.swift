import AppAttest
import Encodings
import SoftwareAuthenticator

/// Assertions that were made before the clock started.
///
/// Each device of an event loop has an equal number of them, for its counters in a row. They are
/// kept in a few large blocks. One task makes each block from the keys of some devices, so a
/// million keys are made once and none is kept.
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
        let challenges: [[UInt8]]

        /// The number of bytes of all assertions.
        var byteCount: Int { devices.count * (keyIDCount + perDevice * slotCount) }
    }

    static let empty = PreSigned(perDevice: 0, blocks: [])

    /// Devices of one block.
    private static let blockDevices = 64
    /// Characters of a key id.
    private static let keyIDCount = 44
    /// An assertion's text, 192 characters at most, after its length, and a challenge.
    private static let assertionCount = 192
    private static var slotCount: Int { 1 + assertionCount + RequestTemplate.challengeCount }

    let perDevice: Int
    private let blocks: [[UInt8]]

    /// Makes the assertions, on all cores.
    static func make(_ order: Order) async -> PreSigned {
        let starts = stride(from: 0, to: order.devices.count, by: blockDevices)
        let blocks = await withTaskGroup(of: (Int, [UInt8]).self) { group in
            var blocks = [[UInt8]](repeating: [], count: starts.underestimatedCount)
            for (number, start) in starts.enumerated() {
                let range = start..<min(start + blockDevices, order.devices.count)
                group.addTask { (number, self.block(order, range)) }
            }
            for await (number, block) in group { blocks[number] = block }
            return blocks
        }
        return PreSigned(perDevice: order.perDevice, blocks: blocks)
    }

    private static func block(_ order: Order, _ range: Range<Int>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(range.count * (keyIDCount + order.perDevice * slotCount))
        var hasher = ContentHasher()
        let contents = order.template.contents
        for local in range {
            var key = order.fleet.key(order.devices[local])
            key.counter = SignCounter(rawValue: order.firstCounter - 1)
            bytes += Base64.encode(key.keyID.bytes)
            for number in 0..<order.perDevice {
                let place = local * order.perDevice + number
                let challenge = place < order.challenges.count ? order.challenges[place] : []
                let content = contents[contentIndex(local, number, of: contents.count)]
                let hash = hasher.hash(
                    order.template,
                    content,
                    challenge: challenge.isEmpty ? nil : challenge
                )
                let text = key.assertionText(clientDataHash: hash)
                precondition(text.count <= assertionCount, "PreSigned: a longer assertion")
                bytes.append(UInt8(text.count))
                bytes += text
                bytes += repeatElement(0, count: assertionCount - text.count)
                bytes += challenge
                bytes += repeatElement(0, count: RequestTemplate.challengeCount - challenge.count)
            }
        }
        return bytes
    }

    /// The content that a device's n-th assertion covers.
    static func contentIndex(_ device: Int, _ number: Int, of count: Int) -> Int {
        (device + number) % count
    }

    /// Copies a device's n-th assertion; `false` when there are fewer.
    func copy(device: Int, number: Int, hasChallenge: Bool, into proof: inout ProofTexts) -> Bool {
        let (block, local) = device.quotientAndRemainder(dividingBy: Self.blockDevices)
        guard number >= 0, number < perDevice, block < blocks.count else { return false }
        let bytes = blocks[block]
        let device = local * (Self.keyIDCount + perDevice * Self.slotCount)
        let slot = device + Self.keyIDCount + number * Self.slotCount
        guard slot + Self.slotCount <= bytes.count else { return false }
        Self.set(&proof.keyID, bytes, device..<device + Self.keyIDCount)
        Self.set(&proof.assertion, bytes, slot + 1..<slot + 1 + Int(bytes[slot]))
        let challenge = slot + 1 + Self.assertionCount
        let challengeCount = hasChallenge ? RequestTemplate.challengeCount : 0
        Self.set(&proof.challenge, bytes, challenge..<challenge + challengeCount)
        return true
    }

    /// Replaces a text and keeps its memory.
    private static func set(_ text: inout [UInt8], _ bytes: [UInt8], _ range: Range<Int>) {
        text.removeAll(keepingCapacity: true)
        text += bytes[range]
    }
}
