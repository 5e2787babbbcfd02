import AppAttest
import Cryptography
import Encodings
import RequestBinding
import Rules
import SoftwareAuthenticator

/// Signs during the run, with keys that are made when they are first needed.
struct Signer {
    private let fleet: FleetDevices
    private let template: RequestTemplate
    private var hasher = ContentHasher()
    private var keys: [Int: SoftwareKey] = [:]
    private var mint: TokenMint?
    /// The number of assertions, and the nanoseconds for all of them.
    private(set) var count: UInt64 = 0
    private(set) var nanoseconds: UInt64 = 0

    /// - mint: makes the tokens of phones; `nil` where they show none.
    init(_ fleet: FleetDevices, _ template: RequestTemplate, _ mint: TokenMint? = nil) {
        self.fleet = fleet
        self.template = template
        self.mint = mint
    }

    /// Counts the time of a signature, by the caller's clock.
    mutating func note(nanoseconds spent: UInt64) {
        count += 1
        nanoseconds += spent
    }

    /// Signs one of the contents with a key of the fleet.
    mutating func sign(
        device index: Int,
        counter: UInt32,
        content: Int,
        challenge: [UInt8],
        into proof: inout ProofTexts
    ) {
        var key = key(index)
        sign(&key, counter, content, challenge, into: &proof)
    }

    private mutating func key(_ index: Int) -> SoftwareKey {
        let key = keys[index] ?? fleet.key(index)
        if keys[index] == nil { keys[index] = key }
        return key
    }

    /// Adds a token to a proof that was signed before the clock started. A token is good for
    /// minutes, so it is made when its request is due.
    mutating func addToken(device index: Int, content: Int, to proof: inout ProofTexts) {
        guard mint != nil else { return }
        let hash = hash(content, proof.challenge)
        let key = key(index)
        proof.token = mint?.token(of: key, over: hash) ?? []
    }

    private mutating func hash(_ content: Int, _ challenge: [UInt8]) -> [UInt8] {
        hasher.hash(
            template,
            template.contents[content],
            challenge: challenge.isEmpty ? nil : challenge
        )
    }

    /// Signs with a key that no gateway knows.
    mutating func signAsStranger(_ index: Int, challenge: [UInt8], into proof: inout ProofTexts) {
        var key = fleet.stranger(index)
        sign(&key, 1, 0, challenge, into: &proof)
    }

    private mutating func sign(
        _ key: inout SoftwareKey,
        _ counter: UInt32,
        _ content: Int,
        _ challenge: [UInt8],
        into proof: inout ProofTexts
    ) {
        let hash = hash(content, challenge)
        key.counter = SignCounter(rawValue: counter - 1)
        proof.keyID = Base64.encode(key.keyID.bytes)
        proof.assertion = key.assertionText(clientDataHash: hash)
        proof.challenge = challenge
        proof.token = mint?.token(of: key, over: hash) ?? []
    }
}

/// Makes the hash that a device signs, and keeps its scratch memory.
struct ContentHasher: Sendable {
    private var lines = RequestLines()
    private var content: [UInt8] = []

    /// SHA-256 of the client data of a request.
    ///
    /// - `challenge`: the text, where one is sent.
    mutating func hash(
        _ template: RequestTemplate,
        _ made: RequestTemplate.Content,
        challenge: [UInt8]?
    ) -> [UInt8] {
        if let fixed = made.fixedHash { return fixed }
        switch template.demand.signing {
        case .lines(let parts, _):
            lines.resume(behind: made.linesBefore, parts, hasDigest: true)
            if let challenge {
                template.finish(&lines, challenge: challenge.span)
            } else {
                template.finish(&lines, challenge: nil)
            }
            return SHA256.digest(of: lines.bytes).array
        case .content:
            content.removeAll(keepingCapacity: true)
            content += made.bytes
            if let place = made.challengePlace, let challenge {
                content.replaceSubrange(place, with: challenge)
            }
            return SHA256.digest(content.span.extracting(made.plain)).array
        case .challenge: return SHA256.digest(of: challenge ?? []).array
        }
    }
}

/// The proof of a request, as texts.
struct ProofTexts: Sendable {
    var keyID: [UInt8] = []
    var assertion: [UInt8] = []
    var challenge: [UInt8] = []
    /// Of Play Integrity; empty for none.
    var token: [UInt8] = []
}

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
