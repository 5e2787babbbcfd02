internal import Encodings
public import Foundation
public import PortcullisClient

/// A device in software for debug builds, with one key that an operator admits by hand.
///
/// A ``SoftwareAttestationService`` needs the private key of an authority, and whoever takes that
/// out of a build makes keys at will. A debug device has nothing but its own key, which it makes
/// once. It prints the line that admits it:
///
///     portcullis keys import --config portcullis.yaml line.jsonl
///
/// An operator revokes it like any other key. Nothing is attested and nothing enrolled: until the
/// line is imported, requests are refused as `key-unknown`. Start the app again then. Make the
/// session with `PortcullisSession(gateway:debugDevice:)`.
public actor DebugDevice: AttestationService {
    /// Always `true`.
    public nonisolated let isSupported = true

    private let app: SimulatedApp
    private let store: any EnrolmentStore
    private let show: @Sendable (String) -> Void

    /// How often the key is written while other processes write it, too.
    private static let writesMax = 8

    /// A device for one app.
    ///
    /// - Parameters:
    ///   - appID: as in the gateway's configuration: prefix, full stop, bundle identifier.
    ///   - store: where the key is kept. It holds a private key.
    ///   - show: what is done with the line for `keys import`: it is printed.
    public init(
        appID: String,
        keptIn store: any EnrolmentStore,
        show: @escaping @Sendable (String) -> Void = {
            FileHandle.standardError.write(Data("\($0)\n".utf8))
        }
    ) {
        app = SimulatedApp(appID: appID, device: .iPhone, build: nil)
        (self.store, self.show) = (store, show)
    }

    #if canImport(Security)
        /// A device whose key is in the Keychain, on this device only.
        ///
        /// - Parameter appID: as in the gateway's configuration.
        public init(appID: String) {
            let keychain = KeychainEnrolmentStore()
            let name = URL(string: "https://debug-device.invalid")
            self.init(appID: appID, keptIn: name.map { keychain.scoped(to: $0) } ?? keychain)
        }
    #endif

    /// The line for `keys import`: the key's public half, and the counter from which it begins.
    public var importLine: String {
        get async throws(AttestationServiceError) {
            let key = try await changed { _ in }
            do {
                var line = JSONWriter()
                let (keyID, point) = (try key.keyID, try key.publicKey)
                line.object { line in
                    line.member("key_id", keyID)
                    line.member("app_id", app.appID)
                    line.member("environment", "test")
                    line.member("public_key", point.base64EncodedString())
                    line.member("counter", Int(key.counter))
                }
                return line.text
            } catch {
                throw .unknownSystemFailure
            }
        }
    }

    /// The id of the one key, which is made once.
    public func generateKey() async throws(AttestationServiceError) -> String {
        let key = try await changed { _ in }
        do {
            return try key.keyID
        } catch {
            throw .unknownSystemFailure
        }
    }

    /// Prints the line for `keys import`: the gateway does not know the key.
    ///
    /// - Throws: `serverUnavailable`, always: an operator may admit the key later.
    public func attestKey(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        show("The gateway does not know this key. For portcullis keys import:")
        show(try await importLine)
        throw .serverUnavailable
    }

    /// Signs with the key. Its counter goes up by one.
    public func generateAssertion(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        let key = try await changed { $0.counter &+= 1 }
        do {
            guard try key.keyID == keyID else { throw AttestationServiceError.invalidKey }
            return try key.assertion(for: app, clientDataHash: clientDataHash)
        } catch let error as AttestationServiceError {
            throw error
        } catch {
            throw .unknownSystemFailure
        }
    }

    fileprivate func showLine() async throws(AttestationServiceError) {
        show(try await importLine)
    }

    /// Changes the key, or makes it first, and keeps it.
    private func changed(
        _ change: (inout SimulatedKey) -> Void
    ) async throws(AttestationServiceError) -> SimulatedKey {
        do {
            for _ in 0..<Self.writesMax {
                let kept = try await store.read()
                var key =
                    try kept.map { try JSONDecoder().decode(SimulatedKey.self, from: $0) }
                    ?? SimulatedKey()
                change(&key)
                let bytes = try JSONEncoder().encode(key)
                if bytes == kept { return key }
                if try await store.replace(kept, with: bytes) { return key }
            }
        } catch {
            throw .unknownSystemFailure
        }
        throw .unknownSystemFailure
    }
}

extension PortcullisSession {
    /// A session of a debug build, whose key an operator imports.
    ///
    /// - Parameters:
    ///   - gateway: as `http://127.0.0.1:8080`.
    ///   - debugDevice: the device in software. Its line for `keys import` is printed.
    ///   - plan: what routes ask, as `portcullis plan` wrote it; `nil` to learn it from answers.
    /// - Throws: where the key can't be read or made.
    public convenience init(
        gateway: URL,
        debugDevice: DebugDevice,
        plan: SigningPlan? = nil
    ) async throws {
        var configuration = PortcullisConfiguration(gateway: gateway)
        configuration.plan = plan
        configuration.deviceTokens = SoftwareDeviceTokenService()
        let keyID = try await debugDevice.generateKey()
        try await debugDevice.showLine()
        self.init(
            configuration,
            service: debugDevice,
            // An operator enrols the key, so the record says from the start that it is.
            store: MemoryEnrolmentStore(enrolled: keyID, at: configuration.endpoints)
        )
    }
}
