import AppAttest
import Cryptography
import Encodings
import Expectations
import RequestBinding
import Rules
import SoftwareAuthenticator
import Testing
import Tokens

@testable import LoadGenerator

@Suite struct DeviceTests {
    private static let fleet = DeviceFleet(
        seed: "seed",
        appID: "TEAM123456.com.example",
        count: 100
    )

    @Test func `a fleet's file says all that makes it`() throws {
        var fleet = Self.fleet
        fleet.nextCounter = 4_000_000_000
        let read = try #require(DeviceFleet(text: Array(fleet.text.utf8)))
        expectEqual(read.seed, fleet.seed)
        expectEqual(read.appID, fleet.appID)
        expectEqual(read.count, fleet.count)
        expectEqual(read.nextCounter, fleet.nextCounter)
    }

    @Test(arguments: [
        ("apple", 1, 0), ("android", 0, 1), ("apple:3,android:1", 3, 1), ("android,apple:2", 2, 1),
    ])
    func `platforms are shares`(text: String, apple: Int, android: Int) throws {
        let mix = try #require(PlatformMix(text))
        #expect(mix.apple == apple && mix.android == android)
        expectEqual(PlatformMix(mix.text), mix)
        let fleet = DeviceFleet(seed: "a", appID: "b", package: "c", platforms: mix, count: 8)
        let read = try #require(DeviceFleet(text: Array(fleet.text.utf8)))
        #expect(read.platforms == mix && read.package == "c")
        let keys = (0..<8).map { read.devices(at: UnixTime(seconds: 1_800_000_000)).key($0) }
        let phones = keys.filter { $0.device.phone != nil }
        expectEqual(phones.count, 8 * android / (apple + android))
        #expect(phones.allSatisfy { $0.device.appID == "c" })
        expectEqual(Set(phones.map(\.device.phone?.name)).count, phones.count)
    }

    @Test(arguments: ["", "windows", "apple:0", "apple:1001", "apple,apple", "apple:1:2", "apple,"])
    func `other platforms are refused`(text: String) {
        expectEqual(PlatformMix(text), nil)
    }

    @Test(arguments: [
        "", "{}", #"{"seed":"a","app_id":"b","devices":0,"next_counter":1}"#,
        #"{"seed":"a","app_id":"b","devices":1,"next_counter":0}"#,
        #"{"seed":"a","app_id":"b","devices":1,"next_counter":4294967296}"#,
    ])
    func `what is no fleet is refused`(text: String) {
        #expect(DeviceFleet(text: Array(text.utf8)) == nil)
    }

    @Test func `the same seed makes the same keys, another one others`() {
        let time = UnixTime(seconds: 1_800_000_000)
        let lines = Self.fleet.devices(at: time).importLines(0..<3)
        let later = Self.fleet.devices(at: time.advanced(bySeconds: 86_400))
        expectEqual(lines, later.importLines(0..<3))
        expectEqual(Set(lines.split(separator: "\n")).count, 3)
        let other = DeviceFleet(seed: "other", appID: Self.fleet.appID, count: 100)
        #expect(lines != other.devices(at: time).importLines(0..<3))
    }

    @Test func `a busy device is passed over, and none is taken when all are`() {
        var devices = DeviceSet(count: 3, firstCounter: 10, underWayMax: 1)
        let first = devices.take(attempts: 3)
        expectEqual(first, 0)
        expectEqual(devices.begin(0), 75)
        expectEqual(devices.take(attempts: 3), 1)
        _ = devices.begin(1)
        expectEqual(devices.take(attempts: 3), 2)
        _ = devices.begin(2)
        expectEqual(devices.take(attempts: 3), nil)
        devices.end(1, isAdmitted: true)
        expectEqual(devices.take(attempts: 3), 1)
        expectEqual(devices.begin(1), 76)
        expectEqual(devices.endCounter, 77)
    }

    @Test func `the reserved counter is below every window once a request was admitted`() {
        var devices = DeviceSet(count: 1, firstCounter: 10, underWayMax: 4)
        #expect(!devices.isReservedOvertaken(0))
        let counter = devices.begin(0)
        devices.end(0, isAdmitted: false)
        #expect(!devices.isReservedOvertaken(0))
        _ = devices.begin(0)
        devices.end(0, isAdmitted: true)
        #expect(devices.isReservedOvertaken(0))
        let width = UInt32(CounterRule.windowRange.upperBound)
        #expect(counter - devices.reservedCounter > width)
    }

    @Test func `a challenge is not used when it is too old to arrive in time`() {
        var pool = ChallengeStock(lifetime: 10_000_000_000)
        pool.add([1], now: 0)
        pool.add([2], now: 3_000_000_000)
        expectEqual(pool.take(now: 8_500_000_000), [2])
        expectEqual(pool.take(now: 8_500_000_000), nil)
        expectEqual(pool.count, 0)
    }

    private static func read(_ text: [UInt8]) -> UnverifiedChallenge? {
        UnverifiedChallenge(text: text.span)
    }

    @Test func `a challenge of another start differs in its epoch alone`() throws {
        let issuer = ChallengeIssuer(capacity: 1024)
        let text = issuer.issue(.assertion, now: 1_000)
        let foreign = try #require(ChallengeStock.ofAnotherStart(text))
        let (one, other) = (
            try #require(Self.read(text)), try #require(Self.read(foreign))
        )
        #expect(one.epoch != other.epoch)
        expectEqual(one.serial, other.serial)
        expectEqual(one.expiry, other.expiry)
    }

    @Test func `what is kept for replays is what was sent, and the oldest goes first`() {
        var memory = ReplayMemory()
        #expect(memory.any() == nil)
        for number in 0..<5_000 {
            memory.keep(Message(head: [UInt8(number & 255), UInt8(number >> 8)]), nil)
        }
        let seen = Set((0..<20_000).compactMap { _ in memory.any()?.message.head })
        #expect(seen.count > 3_500)
        let oldest = 5_000 - 4_096
        let numbers = seen.map { head in Int(head[0]) + Int(head[1]) << 8 }
        #expect(numbers.allSatisfy { $0 >= oldest })
    }

    @Test func `what was signed beforehand verifies, counter by counter`() async throws {
        let devices = Self.fleet.devices(at: UnixTime(seconds: 1_800_000_000))
        let template = RequestTemplateTests.template("[method, target]")
        let order = PreSigned.Order(
            fleet: devices,
            template: template,
            devices: (0..<70).map { $0 + 5 },
            firstCounter: 66,
            perDevice: 2
        )
        let made = await PreSigned.make(order)
        let hash = template.hash(0, challenge: [])
        for (local, number) in [(0, 0), (0, 1), (63, 1), (64, 0), (69, 1)] {
            let proof = try #require(made.proof(of: local, number: number))
            let key = devices.key(local + 5)
            expectEqual(proof.keyID, Array(key.keyID.base64.utf8))
            let bytes = Base64.decode(proof.assertion.span)
            let verified = try UnverifiedAssertion(bytes: try #require(bytes)).verified(
                clientDataHash: hash.span,
                key: key.publicKey,
                app: AppIDHash(appID: Self.fleet.appID)
            )
            expectEqual(verified.counter.rawValue, 66 + UInt32(number))
        }
        #expect(made.proof(of: 0, number: 2) == nil)
        #expect(made.proof(of: 128, number: 0) == nil)
    }
}
