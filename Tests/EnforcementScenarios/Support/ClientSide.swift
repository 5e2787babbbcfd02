import EventLoops
import Foundation
import LoopbackKit
import Synchronization
import Testing

/// How the scenarios' clients speak to the gateway, and whose keys they have.
///
/// The scenarios are the same for each. `PORTCULLIS_CLIENTS=tls`, `http2` or `android` chooses one
/// for a whole run; suites that are marked ``OverEachClient`` run over all of them in any case.
enum ClientSide: String, CaseIterable, Sendable {
    /// HTTP/1.1 in the clear.
    case http1
    /// HTTP/1.1 under TLS, on a second listener: what a scenario sends in the clear itself has the
    /// first.
    case tls
    /// HTTP/2 by prior knowledge, on the same listener as HTTP/1.1.
    case http2
    /// HTTP/1.1 in the clear, with keys of Android phones.
    case android

    @TaskLocal static var current = ofRun ?? .http1

    /// What the run was told; `nil` when it was told nothing.
    static let ofRun: ClientSide? = {
        guard let name = ProcessInfo.processInfo.environment["PORTCULLIS_CLIENTS"] else {
            return nil
        }
        guard let side = ClientSide(rawValue: name) else {
            fatalError("PORTCULLIS_CLIENTS=\(name): use http1, tls, http2 or android")
        }
        return side
    }()

    /// Does something over HTTP/1.1 in the clear, with the keys of the run.
    static func inTheClear<Value>(_ body: () throws -> Value) rethrows -> Value {
        try $current.withValue(current.clear) { try body() }
    }

    /// The same keys over HTTP/1.1 in the clear.
    fileprivate var clear: ClientSide { self == .android ? .android : .http1 }

    /// The listeners of a configuration, indented, and others after them.
    func listeners(and others: String = "") throws -> String {
        try listeners() + (others.isEmpty ? "" : "\n" + others)
    }

    private func listeners() throws -> String {
        switch self {
        case .http1, .android: return "  - address: 127.0.0.1:0"
        case .http2: return "  - { address: 127.0.0.1:0, http2: on }"
        case .tls:
            let files = try Self.certificate.get()
            let tls = "tls: { certificate: \(files.chain), key: \(files.key) }"
            return "  - address: 127.0.0.1:0\n  - { address: 127.0.0.1:0, \(tls) }"
        }
    }

    /// Nobody's trust is at stake between two ends of one test.
    static let trust = Result { try TLSContext(clientTrusting: .anyone) }

    /// Made once for all scenarios.
    private static let certificate = Result { () throws -> (chain: String, key: String) in
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-clients-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true
        )
        madeIn.withLock { $0 = folder }
        atexit {
            guard let folder = ClientSide.madeIn.withLock({ $0 }) else { return }
            try? FileManager.default.removeItem(atPath: folder)
        }
        guard let openssl = ChildProcess.tool("openssl") else {
            throw ChildProcess.Failure(description: "no openssl")
        }
        let (chain, key) = ("\(folder)/gateway.pem", "\(folder)/gateway.key")
        let arguments = [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "20", "-subj", "/CN=gateway", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", key, "-out", chain,
        ]
        guard try ChildProcess.run(openssl, arguments).status == 0 else {
            throw ChildProcess.Failure(description: "openssl made no certificate")
        }
        return (chain, key)
    }

    private static let madeIn = Mutex<String?>(nil)
}

/// Runs each scenario over HTTP/1.1, HTTP/1.1 under TLS and HTTP/2, and with Android phones, unless
/// the run was told one.
struct OverEachClient: TestTrait, SuiteTrait, TestScoping {
    let isRecursive = true

    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        guard testCase != nil, ClientSide.ofRun == nil else { return try await function() }
        for side in ClientSide.allCases {
            try await ClientSide.$current.withValue(side) { try await function() }
        }
    }
}

extension Trait where Self == OverEachClient {
    static var overEachClient: Self { OverEachClient() }
}

/// In a suite that is marked ``OverEachClient``, runs a scenario over the first of them alone: it
/// waits for long, and the others show nothing more.
struct OverOneClient: TestTrait, TestScoping {
    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        guard ClientSide.ofRun != nil || ClientSide.current == .http1 else { return }
        try await function()
    }
}

extension Trait where Self == OverOneClient {
    static var overOneClient: Self { OverOneClient() }
}

/// Runs a scenario over HTTP/1.1 in the clear whatever the run was told: the gateway serves as a
/// user that may not read the key of ``ClientSide/certificate``, and refuses one that all may read.
struct InTheClear: TestTrait, TestScoping {
    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        try await ClientSide.$current.withValue(ClientSide.current.clear) { try await function() }
    }
}

extension Trait where Self == InTheClear {
    static var inTheClear: Self { InTheClear() }
}

/// Runs a scenario with devices of Apple's whatever the run was told: it is about what they alone
/// send.
struct OfApple: TestTrait, SuiteTrait, TestScoping {
    let isRecursive = true

    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        guard testCase != nil, ClientSide.current == .android else { return try await function() }
        try await ClientSide.$current.withValue(.http1) { try await function() }
    }
}

extension Trait where Self == OfApple {
    static var ofApple: Self { OfApple() }
}
