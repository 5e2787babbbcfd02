import AppleStandIn
import Encodings
import Foundation
import SoftwareAuthenticator

/// The configuration of the story.
enum DemoConfiguration {
    /// The text of portcullis.yaml.
    static func text(origin port: UInt16, _ apple: StandInServer, _ team: StandInTeam) -> String {
        """
        listen: [{ address: "127.0.0.1:0" }]     # the system chooses the port
        admin: { address: "127.0.0.1:0" }
        origins: { shop: { servers: ["127.0.0.1:\(port)"] } }
        apps:
          - id: \(Phone.appID)
            environments: [test]                 # devices made of software, and their root
            test_root: software-root.pem
          - android: \(Phone.package)
            signers: ["\(Hex.text(SoftwarePhone.signer))"]
            environments: [test]                 # the same root, in the place of Google's
            test_root: software-root.pem
            on_error: forward                    # the first phone may come before the list
          - id: \(PackagedApp.appID)
            environments: [test]                 # the keys of the client package's stand-in
            test_root: package-root.pem
        store: { sqlite: portcullis.db }
        apple:                                   # a stand-in for Apple's services
          keys: [{ team: \(team.teamID), key_id: \(team.keyID), file: key.p8 }]
          hosts: { \(apple.hostSettings) }
          roots: "\(apple.rootFile)"
        google: \(apple.googleSettings())        # a stand-in's list of revoked phones
        proofs:                                  # a stand-in's tokens of Play Integrity
          play: { kind: play-integrity, decryption_key: decrypt.key, verification_key: verify.key }
        log: { access: ./access.log, level: error }
        default: { origin: shop, mode: deny }    # what no rule is for does not exist
        \(rules)
        """
    }

    private static let rules = """
        rules:
          - id: place-order
            match: { method: [POST], path: /v1/orders }
            mode: enforce
            apps: [\(Phone.appID), \(Phone.package)]
            sign: [method, target, body, challenge]
            body: { digest: held, limit: 1MiB }  # verified whole before the origin sees any of it
          - id: pay-out
            match: { method: [POST], path: /v1/payouts }
            mode: enforce
            apps: [\(Phone.package)]
            integrity: { device: [device], licensed: true, action: refuse }
          - id: upload-photo
            match: { method: [PUT], path: /v1/photos/* }
            mode: enforce
            apps: [\(Phone.appID)]
            body: { digest: streamed, limit: 64MiB }   # the origin discards what breaks off
          - id: free-trial
            match: { method: [POST], path: /v1/trial }
            mode: enforce
            apps: [\(Phone.appID)]
            device: { refuse_if: { bit0: true }, timeout: 10s }   # the origin sets bit 0
          - id: checkout
            match: { method: [POST], path: /v1/checkout }
            mode: enforce
            apps: [\(Phone.appID)]
            rollout: { percent: 25%, by: key }
            sign: [method, target]
          - id: checkout-later                   # the same salt: the share of checkout, raised
            match: { method: [POST], path: /v2/checkout }
            mode: enforce
            apps: [\(Phone.appID)]
            rollout: { percent: 50%, by: key, salt: checkout }
            sign: [method, target]
          - id: cart
            match: { method: [GET], path: /v1/cart }
            mode: enforce
            apps: [\(PackagedApp.appID)]
            counter: { window: 64 }
          - id: timeline
            match: { method: [GET], path: /v1/timeline }
            mode: enforce
            apps: [\(PackagedApp.appID)]
            accept: [assertion, session]         # an assertion for a while
            counter: { window: 64 }

        """
}

/// The temporary folder of a run.
final class DemoFolder: Sendable {
    let path: String
    private let isKept: Bool

    init(isKept: Bool) throws {
        self.isKept = isKept
        let parent = FileManager.default.temporaryDirectory.path
        path = "\(parent)/portcullis-demo-\(UInt32.random(in: .min ... .max))"
        do {
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: false,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw StoryFault("can't make the folder \(path): \(error.localizedDescription)")
        }
    }

    func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Writes a file and returns its path.
    func write(_ name: String, _ text: String) throws -> String {
        let isWritten = FileManager.default.createFile(
            atPath: file(name),
            contents: Data(text.utf8),
            attributes: [.posixPermissions: 0o600]
        )
        guard isWritten else { throw StoryFault("can't write \(file(name))") }
        return file(name)
    }

    /// The text of a file; empty without a file.
    func text(_ name: String) -> String {
        String(decoding: FileManager.default.contents(atPath: file(name)) ?? Data(), as: UTF8.self)
    }

    /// Removes the folder, unless it is to be kept.
    ///
    /// - Returns: where it still is.
    func remove() -> String? {
        guard !isKept else { return path }
        do {
            try FileManager.default.removeItem(atPath: path)
            return nil
        } catch {
            return path
        }
    }
}
