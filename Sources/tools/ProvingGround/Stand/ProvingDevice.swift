import AppAttest
import Cryptography
import DeviceKey
import Encodings
import Foundation
import LoopbackSockets
import Signatures
import SoftwareAuthenticator
import Synchronization

/// The devices that are played.
package enum ProvingPlatform: String, Sendable, CaseIterable, Codable {
    case ios, android
}

/// The calls of a device.
enum PlayedDeviceCall: String, Sendable, CaseIterable {
    /// Makes a key; on Android it is attested with that.
    case make
    /// iOS: asks Apple.
    case attest
    /// Signs.
    case sign
    case delete
    case deviceToken = "device-token"
    /// Android: hands out what attests a key.
    case chain

    /// The call that a path stands for.
    init?(path: String, on platform: ProvingPlatform) {
        switch (path, platform) {
        case ("/keys", _): self = .make
        case ("/attest", .ios): self = .attest
        case ("/assert", .ios), ("/sign", .android): self = .sign
        case ("/delete", _): self = .delete
        case ("/device-token", .ios): self = .deviceToken
        case ("/chain", .android): self = .chain
        default: return nil
        }
    }
}

/// A device in software, with the calls of the driver's protocol.
final class ProvingDevice: Sendable {
    /// App and package, as the gateway's configuration has them.
    static let appID = "PROVE12345.com.example.shop"
    static let package = "com.example.shop"

    private enum Key {
        case apple(SoftwareKey, isAttested: Bool)
        case android(P256PrivateKey, chain: [[UInt8]])
    }

    /// What the content of a call says.
    private struct Content: Decodable {
        var key_id: String?
        var hash: String?
        var challenge: String?
        var key: String?
        var message: String?
    }

    /// The most seconds that something hangs.
    private static let hangMax = 600.0

    private let platform: ProvingPlatform
    private let device: SoftwareDevice
    private let ledger: ProvingLedger
    let faults: FaultList
    private let keys = Mutex<[String: Key]>([:])

    init(
        _ platform: ProvingPlatform,
        _ authority: SoftwareAuthority,
        ledger: ProvingLedger,
        faults: [PlayedFault]
    ) {
        self.platform = platform
        self.ledger = ledger
        self.faults = FaultList(faults)
        switch platform {
        case .ios:
            device = SoftwareDevice(
                authority: authority,
                appID: Self.appID,
                environment: .production,
                shape: .iOS26
            )
        case .android:
            device = SoftwareDevice(
                authority: authority,
                package: Self.package,
                phone: SoftwarePhone()
            )
        }
    }

    /// Loses all keys, as a device does that is restored from a backup.
    func forgetKeys() { keys.withLock { $0 = [:] } }

    /// The word for a key that the device does not have.
    private var missing: String { platform == .ios ? "invalidKey" : "missing" }
    private var unfit: String { platform == .ios ? "invalidInput" : "permanent" }

    func answer(_ request: ServedRequest) -> ServedAnswer? {
        guard request.method == "POST",
            let call = PlayedDeviceCall(path: request.path, on: platform)
        else {
            return .json(404, Array(#"{"error":"no such call of this device"}"#.utf8))
        }
        let fault = faults.strike { fault in
            (fault.place == .all || fault.place == .device(call))
                && (fault.platform == nil || fault.platform == platform)
        }
        if let fault, !prepares(fault) {
            ledger.add(SeenCall(kind: call, error: fault.deed == .fail ? fault.error : "hang"))
            return fault.deed == .fail ? Self.failed(fault.error) : nil
        }
        let result = outcome(of: call, request.content)
        let late = fault.flatMap { $0.deed == .fail ? $0.error : nil }
        switch result {
        case .success(let answer):
            ledger.add(SeenCall(kind: call, error: late))
            guard let late else { return Self.json(answer) }
            return Self.failed(late)
        case .failure(let error):
            ledger.add(SeenCall(kind: call, error: error.word))
            return Self.failed(error.word)
        }
    }

    /// Does what comes before the call; whether the call is made at all.
    private func prepares(_ fault: PlayedFault) -> Bool {
        switch fault.deed {
        case .delay: return ledger.pause(seconds: fault.seconds)
        case .hang:
            ledger.pause(seconds: Self.hangMax)
            return false
        case .fail:
            if fault.seconds > 0 { ledger.pause(seconds: fault.seconds) }
            return fault.isLate
        default: return true
        }
    }

    private struct DeviceFailure: Error { let word: String }

    private func outcome(
        of call: PlayedDeviceCall,
        _ bytes: [UInt8]
    ) -> Result<[String: Any], DeviceFailure> {
        let read = try? JSONDecoder().decode(Content.self, from: Data(bytes))
        guard let content = bytes.isEmpty ? Content() : read else {
            return .failure(DeviceFailure(word: unfit))
        }
        do throws(DeviceFailure) {
            switch call {
            case .make: return .success(try made(content))
            case .attest: return .success(try attested(content))
            case .sign: return .success(try signed(content))
            case .delete:
                keys.withLock { $0[content.key ?? content.key_id ?? ""] = nil }
                return .success([:])
            case .chain: return .success(try attesting(content.key ?? ""))
            case .deviceToken: return .success(["token": Base64.text(RandomBytes.make(count: 32))])
            }
        } catch {
            return .failure(error)
        }
    }

    private func made(_ content: Content) throws(DeviceFailure) -> [String: Any] {
        switch platform {
        case .ios:
            let key = device.makeKey()
            keys.withLock { $0[key.keyID.base64] = .apple(key, isAttested: false) }
            return ["key_id": key.keyID.base64]
        case .android:
            guard let challenge = content.challenge.flatMap({ Base64.decode($0) }) else {
                throw DeviceFailure(word: unfit)
            }
            let key = P256PrivateKey()
            let chain = device.chain(
                for: key.publicKey,
                attestationChallenge: challenge,
                at: Self.now
            )
            let name = content.key ?? "key-\(RandomBytes.word())"
            keys.withLock { $0[name] = .android(key, chain: chain) }
            return try attesting(name)
        }
    }

    /// An Android key, as it can be asked for again.
    private func attesting(_ name: String) throws(DeviceFailure) -> [String: Any] {
        guard case .android(let key, let chain) = keys.withLock({ $0[name] }) else {
            throw DeviceFailure(word: missing)
        }
        return [
            "key": name, "key_id": KeyID(of: key.publicKey).base64,
            "point": Base64.text(key.publicKey.x963), "chain": chain.map { Base64.text($0) },
        ]
    }

    private func attested(_ content: Content) throws(DeviceFailure) -> [String: Any] {
        let hash = try hash(content)
        let key: SoftwareKey? = keys.withLock { keys in
            let name = content.key_id ?? ""
            guard case .apple(let key, false) = keys[name] else { return nil }
            keys[name] = .apple(key, isAttested: true)
            return key
        }
        guard let key else { throw DeviceFailure(word: missing) }
        return ["attestation": Base64.text(key.attestation(clientDataHash: hash, at: Self.now))]
    }

    private func signed(_ content: Content) throws(DeviceFailure) -> [String: Any] {
        guard platform == .ios else {
            guard let message = content.message.flatMap({ Base64.decode($0) }) else {
                throw DeviceFailure(word: unfit)
            }
            let key = keys.withLock { $0[content.key ?? ""] }
            guard case .android(let key, _) = key else { throw DeviceFailure(word: missing) }
            return ["signature": Base64.text(key.signature(message: message.span))]
        }
        let hash = try hash(content)
        let assertion: [UInt8]? = keys.withLock { keys in
            let name = content.key_id ?? ""
            guard case .apple(var key, true) = keys[name] else { return nil }
            let assertion = key.assertion(clientDataHash: hash)
            keys[name] = .apple(key, isAttested: true)
            return assertion
        }
        guard let assertion else { throw DeviceFailure(word: missing) }
        return ["assertion": Base64.text(assertion)]
    }

    private func hash(_ content: Content) throws(DeviceFailure) -> [UInt8] {
        guard let hash = content.hash.flatMap({ Base64.decode($0) }), hash.count == 32 else {
            throw DeviceFailure(word: unfit)
        }
        return hash
    }

    private static var now: UnixTime {
        UnixTime(seconds: Int64(Date().timeIntervalSince1970))
    }

    private static func json(_ object: [String: Any]) -> ServedAnswer? {
        let data = try? JSONSerialization.data(withJSONObject: object, options: [.sortedKeys])
        return data.map { .json(200, Array($0)) }
    }

    private static func failed(_ word: String) -> ServedAnswer {
        .json(409, Array(#"{"error":"\#(word)"}"#.utf8))
    }
}
