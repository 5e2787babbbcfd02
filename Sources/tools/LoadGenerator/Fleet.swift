import AppAttest
import ByteCoding
package import Cryptography
import JSONText
package import SoftwareAuthenticator

/// Devices out of one seed.
///
/// Any process that knows the seed knows all keys, so a million of them need no file. What has to
/// be kept is a counter: a gateway remembers the highest of each key, so the next run begins above
/// all counters of this one.
package struct Fleet: Sendable {
    /// Anybody who knows it can sign for all devices.
    package let seed: String
    package let appID: String
    package let count: Int
    /// No device has used this counter or a higher one.
    package var nextCounter: UInt32

    /// The most devices.
    package static let countMax = 100_000_000
    /// A run may use so many counters; a run that breaks off has them reserved.
    package static let counterReserve: UInt32 = 1 << 24

    package init(seed: String, appID: String, count: Int, nextCounter: UInt32 = 1) {
        self.seed = seed
        self.appID = appID
        self.count = count
        self.nextCounter = nextCounter
    }

    /// Reads the text of a fleet's file; `nil` for any other text.
    package init?(text: [UInt8]) {
        let members: Set = ["seed", "app_id", "devices", "next_counter"]
        guard let document = JSONDocument(text.span, members: members),
            let seed = document.string("seed"), let appID = document.string("app_id"),
            let count = document.integer("devices"), (1...Self.countMax).contains(count),
            let next = document.integer("next_counter").flatMap(UInt32.init(exactly:)), next > 0
        else { return nil }
        self.init(seed: seed, appID: appID, count: count, nextCounter: next)
    }

    /// The text of its file.
    package var text: String {
        var json = JSONWriter(.indented)
        json.object { json in
            json.member("seed", seed)
            json.member("app_id", appID)
            json.member("devices", count)
            json.member("next_counter", nextCounter)
        }
        json.endLine()
        return json.text
    }

    /// Whether the texts can stand in JSON as they are.
    package static func isPlain(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 256
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }
    }

    /// A seed that can't be guessed.
    package static func randomSeed() -> String { Hex.text(RandomOctets.make(count: 16)) }

    /// The authority whose root a `test_root` file has.
    package func authority(at now: UnixTime) -> SoftwareAuthority {
        SoftwareAuthority(seed: Array("load authority \(seed)".utf8), madeAt: now)
    }

    /// What makes the keys, with objects as iOS before 27 makes them.
    package func device(at now: UnixTime) -> SoftwareDevice {
        SoftwareDevice(
            authority: authority(at: now),
            appID: appID,
            environment: .production,
            shape: .beforeTwentySeven
        )
    }

    /// What the key of a device is made from.
    func keySeed(_ index: Int) -> [UInt8] { Array("load device \(seed) \(index)".utf8) }
    /// What the key of a stranger is made from, which no gateway knows.
    func strangerSeed(_ index: Int) -> [UInt8] { Array("load stranger \(seed) \(index)".utf8) }

    /// The lines of `portcullis keys import` for some of the devices, each with its line feed.
    package func importLines(_ range: Range<Int>, _ device: SoftwareDevice) -> String {
        range.map { device.makeKey(seed: keySeed($0)).importLine(as: .test) + "\n" }.joined()
    }
}
