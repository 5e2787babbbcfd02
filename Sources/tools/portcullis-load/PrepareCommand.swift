import ArgumentParser
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

    @Option(
        help: "The devices: apple, android, or shares such as apple:3,android:1.",
        transform: LoadOptionText.platforms
    )
    var platform: PlatformMix?

    @Option(help: "Among other devices: the package name of the phones.")
    var package: String?

    @Option(help: "How many devices.", transform: LoadOptionText.number(1...DeviceFleet.countMax))
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
        let platform = platform ?? .apple
        guard (package != nil) == (platform.apple > 0 && platform.android > 0) else {
            throw LoadError("--package NAME is for phones among other devices, which need it")
        }
        let made = DeviceFleet(
            seed: seed ?? DeviceFleet.randomSeed(),
            appID: appID,
            package: package,
            platforms: platform,
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
            try makeSecret(decryptionKey, made.tokenKeys.decryption)
            print("decryption key: \(decryptionKey)")
        }
        if let verificationKey {
            try makeSecret(verificationKey, made.tokenKeys.verification)
            print("verification key: \(verificationKey)")
        }
        if let keys {
            try await writeKeys(made.devices(at: .current), to: keys)
            print("keys: \(keys), for portcullis keys import")
        }
        try TextFile.write(fleet, made.text)
        print("fleet: \(fleet), \(devices) devices")
    }

    /// Writes a file that others may not read.
    private func makeSecret(_ path: String, _ text: String) throws(LoadError) {
        let isWritten = FileManager.default.createFile(
            atPath: path,
            contents: Data((text + "\n").utf8),
            attributes: [.posixPermissions: 0o600]
        )
        guard isWritten else { throw LoadError("\(path): can't be written") }
    }

    /// The keys are made on all cores, a few batches ahead of the writing.
    private func writeKeys(_ made: FleetDevices, to path: String) async throws {
        guard FileManager.default.createFile(atPath: path, contents: nil),
            let file = FileHandle(forWritingAtPath: path)
        else { throw LoadError("\(path): can't be written") }
        let group = Self.batch * max(ProcessInfo.processInfo.activeProcessorCount, 1)
        for first in stride(from: 0, to: devices, by: group) {
            let end = min(first + group, devices)
            let texts = await withTaskGroup(of: (Int, String).self) { tasks in
                for start in stride(from: first, to: end, by: Self.batch) {
                    tasks.addTask {
                        (start, made.importLines(start..<min(start + Self.batch, end)))
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
