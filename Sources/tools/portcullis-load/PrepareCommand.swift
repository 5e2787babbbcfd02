import ArgumentParser
import Cryptography
import Foundation
import LoadGenerator
import SoftwareAuthenticator

struct PrepareCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prepare",
        abstract: "Make a fleet of devices: a file with a seed, keys to import, a root.",
        discussion: """
            The fleet's file holds no keys but what they are made from, and the counter at which \
            the next run begins. Importing needs --keys; enrolling needs --root, which goes into \
            the app's test_root. A gateway reads the phones' tokens of Play Integrity with the \
            keys of --decryption-key and --verification-key, which go into the proof of \
            `kind: play-integrity`.
            """
    )

    @Argument(help: "The fleet's file, which must not exist yet.")
    var fleet: String

    @Option(
        help: "The App ID, or the package name of phones, as the gateway's configuration has it."
    )
    var appID: String

    @Option(help: "The devices: apple, android, or shares such as apple:3,android:1.")
    var platform = PlatformMix.apple.text

    @Option(help: "Among other devices: the package name of the phones.")
    var package: String?

    @Option(help: "How many devices.")
    var devices = 1_000

    @Option(help: "What all keys are made from, random by default. Counters begin at 1.")
    var seed: String?

    @Option(help: "Write the lines for `portcullis keys import` to this file.")
    var keys: String?

    @Option(help: "Write the root certificate to this file.")
    var root: String?

    @Option(help: "Write the decryption_key of the phones' tokens of Play Integrity to this file.")
    var decryptionKey: String?

    @Option(help: "Write the verification_key of the phones' tokens to this file.")
    var verificationKey: String?

    /// Devices whose keys one task makes.
    private static let batch = 1_000

    func run() async throws {
        guard (1...DeviceFleet.countMax).contains(devices) else {
            throw LoadError("--devices: 1…\(DeviceFleet.countMax)")
        }
        guard let platforms = PlatformMix(platform) else {
            throw LoadError("--platform \(platform): use apple, android or apple:3,android:1")
        }
        guard (package != nil) == (platforms.apple > 0 && platforms.android > 0) else {
            throw LoadError("--package NAME is for phones among other devices, which need it")
        }
        let made = DeviceFleet(
            seed: seed ?? DeviceFleet.randomSeed(),
            appID: appID,
            package: package,
            platforms: platforms,
            count: devices
        )
        guard [made.seed, appID, package ?? appID].allSatisfy(DeviceFleet.isPlain) else {
            throw LoadError(
                "--seed, --app-id, --package: printable ASCII without spaces and quotes"
            )
        }
        guard !FileManager.default.fileExists(atPath: fleet) else {
            throw LoadError("\(fleet): is there already; its devices' counters are in it")
        }
        if let root {
            try TextFile.write(root, made.authority(at: .current).rootPEM)
            print("root: \(root)")
        }
        if let decryptionKey {
            try SecretFile.write(decryptionKey, made.tokenKeys.decryption + "\n")
            print("decryption key: \(decryptionKey)")
        }
        if let verificationKey {
            try SecretFile.write(verificationKey, made.tokenKeys.verification + "\n")
            print("verification key: \(verificationKey)")
        }
        if let keys {
            try await writeKeys(made, to: keys)
            print("keys: \(keys), for portcullis keys import")
        }
        try FleetFile.write(fleet, made)
        print("fleet: \(fleet), \(devices) devices")
    }

    /// The keys are made on all cores, a few batches ahead of the writing.
    private func writeKeys(_ made: DeviceFleet, to path: String) async throws {
        guard FileManager.default.createFile(atPath: path, contents: nil),
            let file = FileHandle(forWritingAtPath: path)
        else { throw LoadError("\(path): can't be written") }
        let fleet = made.devices(at: .current)
        let starts = Array(stride(from: 0, to: made.count, by: Self.batch))
        let width = max(ProcessInfo.processInfo.activeProcessorCount, 1)
        for group in stride(from: 0, to: starts.count, by: width) {
            let batches = starts[group..<min(group + width, starts.count)]
            let texts = await withTaskGroup(of: (Int, String).self) { tasks in
                for start in batches {
                    tasks.addTask {
                        let range = start..<min(start + Self.batch, made.count)
                        return (start, fleet.importLines(range))
                    }
                }
                return await tasks.reduce(into: []) { $0.append($1) }
            }
            for (_, text) in texts.sorted(by: { $0.0 < $1.0 }) {
                try file.write(contentsOf: Data(text.utf8))
            }
        }
        try file.close()
    }
}
