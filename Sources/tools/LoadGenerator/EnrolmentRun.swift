import AppAttest
package import ConfigurationReading
import Dispatch
import Encodings
import EventLoops
import Rules
package import Signatures
import SoftwareAuthenticator
import Tokens

/// The enrolment of a fleet through a gateway's endpoints, at the highest rate that the gateway
/// allows.
package struct EnrolmentRun: Sendable {
    let server: ServerPlace
    let host: String
    let endpoints: String
    let fleet: Fleet
    let connections: Int
    /// Makes the tokens of phones; `nil` where they show none.
    let mint: TokenMint?
    private let devices: FleetDevices
    private let now: UnixTime
    private let hashing: AppPolicy.ClientDataHash

    /// Seconds between two reports of the progress.
    private static let progressSeconds = 5.0

    /// Milliseconds for a connection and for an answer.
    static let timeout: UInt64 = 10_000

    /// - showsTokens: phones show a token of Play Integrity beside their chain.
    /// - Throws: when the configuration has no such app for software devices, or can't read the
    ///   phones' tokens.
    package init(
        _ fleet: Fleet,
        _ configuration: GatewayConfiguration,
        url: LoadURL,
        server: ServerPlace,
        connections: Int,
        showsTokens: Bool = false,
        now: UnixTime
    ) throws(LoadError) {
        let apps = try fleet.appIDs.map { id throws(LoadError) in
            guard let app = configuration.apps.first(where: { $0.id == id }) else {
                throw LoadError("the configuration has no app \(id)")
            }
            guard app.isTest else {
                throw LoadError("app \(id) trusts no authority of devices made of software")
            }
            return app
        }
        self.fleet = fleet
        self.server = server
        self.connections = connections
        self.now = now
        host = url.authority
        endpoints = configuration.endpointsPath
        devices = fleet.devices(at: now)
        hashing = apps.first?.clientDataHash ?? .sha256
        let asked = apps.last?.android?.settings.integrity
        let asker = "app \(apps.last?.id ?? "")"
        mint = try TokenMint(fleet, if: showsTokens, for: asked, of: asker, configuration, now: now)
    }

    /// The document that asks for a device's challenge.
    func call(of index: Int) -> String {
        var json = JSONWriter()
        json.object { json in
            json.member("purpose", ChallengePurpose.enrolment.name)
            // A phone makes its key with the challenge, and so after it.
            if !fleet.platforms.isPhone(index) {
                json.member("key_id", devices.key(index).keyID.base64)
            }
        }
        return json.text
    }

    /// The document that enrols a device: asks the stand-in for Apple to attest its key.
    func enrolment(of index: Int, _ challenge: [UInt8]) -> String {
        devices.key(index).enrolment(
            challenge: String(decoding: challenge, as: UTF8.self),
            clientDataHash: hashing == .raw ? challenge : nil,
            at: now
        )
    }

    /// A token beside the document: over the challenge, as the key is.
    func token(of index: Int, _ challenge: [UInt8], _ mint: inout TokenMint?) -> [UInt8]? {
        mint?.token(of: devices.key(index), over: SHA256.digest(of: challenge).array)
    }

    /// Enrols all devices; those that are enrolled already count as `known`.
    ///
    /// - Throws: the first answer that is neither success nor "later".
    package func run(
        progress: @escaping @Sendable (EnrolmentCounts) -> Void
    ) async throws(LoadError) -> EnrolmentCounts {
        let loop: EventLoop
        do throws(SocketError) {
            loop = try EventLoop(number: 0)
        } catch {
            throw LoadError("\(error)")
        }
        let (events, stream) = AsyncStream<EnrolmentNews?>.makeStream()
        let carried = LoopBound(EnrolmentLoop(self, on: loop) { stream.yield($0) }, on: loop)
        loop.start()
        defer { loop.stop() }
        loop.perform { carried.value.start() }
        let queue = DispatchQueue(label: "portcullis-load.enrolment")
        let beat = DispatchSource.makeTimerSource(queue: queue)
        beat.setEventHandler { stream.yield(nil) }
        beat.schedule(deadline: .now() + Self.progressSeconds, repeating: Self.progressSeconds)
        beat.activate()
        defer { beat.cancel() }
        for await event in events {
            let counts = await withCheckedContinuation { continuation in
                loop.perform {
                    continuation.resume(returning: carried.value.counts)
                }
            }
            switch event {
            case nil: progress(counts)
            case .finished(nil): return counts
            case .finished(let fault?): throw LoadError("enrolment: \(fault)")
            }
        }
        return EnrolmentCounts()
    }
}

/// The progress of an enrolment.
package struct EnrolmentCounts: Sendable {
    /// Devices answered 201, and 200.
    package var enrolled = 0
    package var known = 0
    /// Answers that say "later".
    package var throttled = 0
    /// How often the stand-in for Apple attested a key.
    package var attested = 0
}

/// The news of the event loop.
enum EnrolmentNews: Sendable {
    /// All devices are enrolled, or a fault ended the enrolment.
    case finished(String?)
}
