import AppAttest
import Encodings
import Foundation
import KeyAttestation
import LoopbackKit
import SoftwareAuthenticator

/// An app with the client for Android, on the Java machine. A software phone stands in the place of
/// Android's keystore: Tests/AndroidClient has what it is made of.
final class AndroidApp {
    static let package = "com.example.shop"

    static let runtime = ChildProcess.tool("java")
    private static let compiler = ChildProcess.tool("kotlinc")
    static var isPossible: Bool { runtime != nil && compiler != nil }
    static let root = URL(filePath: #filePath).appending(path: "../../../..").standardized

    /// The client, the app and the driver for the proving ground, compiled once.
    static func archive() throws -> URL { try compiledOnce.get() }

    private static let compiledOnce = Result {
        let archive = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-android-\(UUID().uuidString).jar")
        let sources = ["Sources/client/android/src", "Tests/AndroidClient"]
        try compile(sources, ["-include-runtime"], to: archive)
        return archive
    }

    /// Compiles folders of the package.
    static func compile(_ sources: [String], _ options: [String], to place: URL) throws {
        guard let compiler else { throw ChildProcess.Failure(description: "no kotlinc") }
        // A short life does not pay for the optimising compiler.
        let run = try ChildProcess.run(
            compiler,
            ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-Werror"] + options
                + sources.map { root.appending(path: $0).path } + ["-d", place.path],
            patience: 4 * ChildProcess.patience
        )
        guard run.status == 0 else {
            throw ChildProcess.Failure(description: run.printed + run.complained)
        }
    }

    /// Runs one of the programs to its end.
    static func run(_ name: String, _ words: [String], path: String? = nil) throws
        -> ChildProcess.Outcome
    {
        guard let runtime else { throw ChildProcess.Failure(description: "no java") }
        let options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m"]
        return try ChildProcess.run(
            runtime,
            options + ["-cp", path ?? archive().path, name] + words,
            patience: 8 * ChildProcess.patience
        )
    }

    private let child: ChildProcess
    private var told = 0

    /// Starts the Java machine with a phone whose keys and tokens an authority makes.
    /// In the folder of keys, if any, the phone keeps them, so that other processes have them, too.
    init(authority: String, keys: URL? = nil) throws {
        guard let runtime = Self.runtime else {
            throw ChildProcess.Failure(description: "no java")
        }
        let archive = try Self.archive()
        child = try ChildProcess(
            runtime,
            [
                "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m", "-cp", archive.path,
                "portcullis.test.MainKt",
            ],
            input: nil
        )
        try tell("phone \(authority)" + (keys.map { " keys=\($0.path)" } ?? ""))
    }

    /// Has the app do something, and returns its answer.
    @discardableResult
    func tell(_ command: String) throws -> String {
        try ask(command)
        return try answer(to: command)
    }

    /// The same without waiting for the answer.
    func ask(_ command: String) throws {
        try child.say(command)
        told += 1
    }

    /// The answer to what was asked last.
    func answer(to command: String) throws -> String {
        try child.wait(for: "answer to \(command)") { [told] printed, _ in
            let lines = printed.split(separator: "\n", omittingEmptySubsequences: false)
            // After each line comes one more, which is empty until the next answer.
            return lines.count > told ? String(lines[told - 1]) : nil
        }
    }

    func end() { child.end() }

    /// The content of the answer that attests a key, for `POINT CHALLENGE LEVEL`.
    static func attested(_ content: [UInt8], by authority: SoftwareAuthority) throws -> String {
        let words = String(decoding: content, as: UTF8.self).split(separator: " ")
        guard words.count == 3, let point = Base64.decode(words[0]),
            let key = P256PublicKey(x963: point), let challenge = Base64.decode(words[1])
        else { throw ChildProcess.Failure(description: "what is to be attested is malformed") }
        var phone = SoftwarePhone()
        if words[2] == "strongbox" { phone.level = .strongBox }
        let device = SoftwareDevice(authority: authority, package: Self.package, phone: phone)
        return device.chain(
            for: key,
            attestationChallenge: challenge,
            at: UnixTime(seconds: Int64(Date().timeIntervalSince1970))
        ).map { Base64.text($0) + "\n" }.joined()
    }
}
