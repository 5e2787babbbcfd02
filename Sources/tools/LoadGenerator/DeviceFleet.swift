import AppAttest
package import ConfigurationReading
import Cryptography
import Encodings
import Rules
package import Signatures
package import SoftwareAuthenticator

/// Devices that come from one seed.
///
/// Any process that knows the seed knows all keys, so a million of them need no file. Only a
/// counter must be kept: a gateway remembers the highest one of each key, so the next run begins
/// above all counters of this one.
package struct DeviceFleet: Sendable {
    /// A secret: a program that knows it can sign for all devices.
    package let seed: String
    /// The app on the devices, by the gateway's name for it: an App ID; where all devices are
    /// Android phones, a package name.
    package let appID: String
    /// The package name of the phones among other devices.
    package let package: String?
    package let platforms: PlatformMix
    package let count: Int
    /// No device has used this counter or a higher one.
    package var nextCounter: UInt32 = 1

    /// The most devices.
    package static let countMax = 100_000_000
    /// A run may use this number of counters. If it breaks off, they stay reserved.
    package static let counterReserve: UInt32 = 1 << 24

    package init(
        seed: String,
        appID: String,
        package: String? = nil,
        platforms: PlatformMix = .apple,
        count: Int
    ) {
        (self.seed, self.appID, self.package) = (seed, appID, package)
        (self.platforms, self.count) = (platforms, count)
    }

    /// Reads the text of a fleet's file; `nil` for any other text.
    package init?(text: [UInt8]) {
        let members: Set = ["seed", "app_id", "package", "platforms", "devices", "next_counter"]
        guard let document = JSONDocument(text.span, members: members),
            let seed = document.string("seed"), let appID = document.string("app_id"),
            let count = document.integer("devices"), (1...Self.countMax).contains(count),
            let next = document.integer("next_counter").flatMap(UInt32.init(exactly:)), next > 0,
            let platforms = PlatformMix(document.string("platforms") ?? PlatformMix.apple.text)
        else { return nil }
        let package = document.string("package")
        self.init(seed: seed, appID: appID, package: package, platforms: platforms, count: count)
        nextCounter = next
    }

    package var text: String {
        var json = JSONWriter(.indented)
        json.object { json in
            json.member("seed", seed)
            json.member("app_id", appID)
            if let package { json.member("package", package) }
            if platforms != .apple { json.member("platforms", platforms.text) }
            json.member("devices", count)
            json.member("next_counter", nextCounter)
        }
        json.endLine()
        return json.text
    }

    /// Whether the texts need no escapes in JSON.
    package static func isPlain(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 256
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }
    }

    /// A seed that can't be guessed.
    package static func randomSeed() -> String { Hex.text(RandomBytes.make(count: 16)) }

    /// The authority whose root is in a `test_root` file.
    package func authority(at now: UnixTime) -> SoftwareAuthority {
        SoftwareAuthority(seed: Array("load authority \(seed)".utf8), madeAt: now)
    }

    /// The apps on the devices, by the gateway's names for them.
    var appIDs: [String] { package.map { [appID, $0] } ?? [appID] }

    /// The devices, which make the keys.
    package func devices(at now: UnixTime) -> FleetDevices { FleetDevices(self, at: now) }
}

/// The devices of a fleet, with objects as iOS before 27 makes them, and as phones with RKP do.
package struct FleetDevices: Sendable {
    private let fleet: DeviceFleet
    private let apple: SoftwareDevice

    init(_ fleet: DeviceFleet, at now: UnixTime) {
        self.fleet = fleet
        apple = SoftwareDevice(
            authority: fleet.authority(at: now),
            appID: fleet.appID,
            environment: .production,
            shape: .beforeTwentySeven
        )
    }

    /// Each phone has its own name, and so a key of its own that attests: the gateway limits what
    /// one such key may attest.
    private func device(_ index: Int) -> SoftwareDevice {
        guard fleet.platforms.isPhone(index) else { return apple }
        var phone = SoftwarePhone()
        phone.name = "load \(index)"
        return SoftwareDevice(
            authority: apple.authority,
            package: fleet.package ?? fleet.appID,
            phone: phone
        )
    }

    func key(_ index: Int) -> SoftwareKey {
        device(index).makeKey(seed: Array("load device \(fleet.seed) \(index)".utf8))
    }

    /// The key of a stranger, which no gateway knows.
    func stranger(_ index: Int) -> SoftwareKey {
        device(index).makeKey(seed: Array("load stranger \(fleet.seed) \(index)".utf8))
    }

    /// The lines of `portcullis keys import` for some of the devices, each with its line feed.
    package func importLines(_ range: Range<Int>) -> String {
        range.map { key($0).importLine(as: .test) + "\n" }.joined()
    }
}

/// How many of a fleet's devices are of which platform: of each four in a row, with
/// `apple:3,android:1`, the last one is a phone.
package struct PlatformMix: Hashable, Sendable {
    /// Devices of Apple's, and Android phones, of as many in a row.
    package let apple: Int
    package let android: Int

    /// Nothing but devices of Apple's.
    package static let apple = PlatformMix(apple: 1, android: 0)

    private static let sharesMax = 1_000

    package var text: String {
        switch (apple, android) {
        case (_, 0): "apple"
        case (0, _): "android"
        default: "apple:\(apple),android:\(android)"
        }
    }

    /// Whether a device of a fleet is a phone, by its number.
    func isPhone(_ index: Int) -> Bool { index % (apple + android) >= apple }
}

extension PlatformMix {
    /// Reads `apple`, `android` or shares of both, `apple:3,android:1`; `nil` for other text.
    package init?(_ text: String) {
        var shares: [Substring: Int] = [:]
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let words = part.split(separator: ":", omittingEmptySubsequences: false)
            guard words.count <= 2, ["apple", "android"].contains(words[0]),
                let share = words.count == 1 ? 1 : Int(words[1]),
                (1...Self.sharesMax).contains(share),
                shares.updateValue(share, forKey: words[0]) == nil
            else { return nil }
        }
        self.init(apple: shares["apple"] ?? 0, android: shares["android"] ?? 0)
    }
}

/// A fleet, and the configuration of the gateway that it sends to.
package struct FleetPairing: Sendable {
    package var fleet: DeviceFleet
    let configuration: GatewayConfiguration
    /// Phones show a token of Play Integrity beside their signature.
    let showsTokens: Bool
    let now: UnixTime

    package init(
        _ fleet: DeviceFleet,
        _ configuration: GatewayConfiguration,
        showsTokens: Bool = false,
        now: UnixTime
    ) {
        (self.fleet, self.configuration) = (fleet, configuration)
        (self.showsTokens, self.now) = (showsTokens, now)
    }

    var devices: FleetDevices { fleet.devices(at: now) }

    /// The rule that verifies a request with a key of the fleet's apps.
    ///
    /// - Throws: when no rule judges the request, when the rule verifies nothing, or when it does
    ///   not admit the apps' keys.
    func judgingRule(for sketch: RequestSketch) throws(LoadError) -> Rule {
        let rule: Rule
        switch configuration.rule(for: sketch) {
        case .noRule(let reason): throw LoadError("no rule judges this request: \(reason)")
        case .rule(let found): rule = found
        }
        guard rule.mode != .off else {
            throw LoadError("rule \(rule.id) is off for this request: nothing is verified")
        }
        let apps = configuration.settings.apps.filter { fleet.appIDs.contains($0.id) }
        if let app = apps.first(where: { !rule.apps.admits($0) }) {
            throw LoadError(
                "rule \(rule.id) admits no keys of \(app.id); give it apps: [\(app.id)]"
            )
        }
        return rule
    }
}
