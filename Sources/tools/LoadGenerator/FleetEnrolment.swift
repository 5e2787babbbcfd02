import AppAttest
import ConfigurationReading
import Cryptography
import DequeModule
import Dispatch
import Encodings
import EventLoops
import Rules
import SoftwareAuthenticator
import Tokens

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

/// The enrolment of a fleet through a gateway's endpoints, at the highest rate that the gateway
/// allows.
package struct FleetEnrolment: Sendable {
    private enum Event: Sendable {
        case beat
        /// All devices are enrolled, or a fault ended the enrolment.
        case finished(String?)
    }

    fileprivate let pairing: FleetPairing
    fileprivate let server: ServerPlace
    fileprivate let host: String
    fileprivate let connections: Int
    /// Makes the tokens of phones; `nil` where they show none.
    fileprivate let mint: TokenMint?
    private let devices: FleetDevices
    private let hashing: AppPolicy.ClientDataHash

    /// Seconds between two reports of the progress.
    private static let progressSeconds = 5.0
    /// Milliseconds for a connection and for an answer.
    fileprivate static let timeout: UInt64 = 10_000

    /// - Throws: when the configuration has no such app for software devices, or can't read the
    ///   phones' tokens.
    package init(
        _ pairing: FleetPairing,
        to server: ServerPlace,
        url: LoadURL,
        connections: Int
    ) throws(LoadError) {
        let apps = try pairing.fleet.appIDs.map { id throws(LoadError) in
            guard let app = pairing.configuration.apps.first(where: { $0.id == id }) else {
                throw LoadError("the configuration has no app \(id)")
            }
            guard app.isTest else {
                throw LoadError("app \(id) trusts no authority of devices made of software")
            }
            return app
        }
        (self.pairing, self.server, self.connections) = (pairing, server, connections)
        host = url.authority
        devices = pairing.devices
        hashing = apps.first?.clientDataHash ?? .sha256
        let asked = apps.last?.android?.settings.integrity
        mint = try TokenMint(pairing, for: asked, of: "app \(apps.last?.id ?? "")")
    }

    /// Enrols all devices; those that are enrolled already count as `known`.
    ///
    /// - Throws: the first answer that is neither success nor "later".
    package func run(
        progress: (EnrolmentCounts) -> Void
    ) async throws(LoadError) -> EnrolmentCounts {
        let (events, stream) = AsyncStream<Event>.makeStream()
        let loop = try OnLoop(number: 0) { loop in
            EnrolmentLoop(self, on: loop) { stream.yield(.finished($0)) }
        }
        loop.tell { $0.start() }
        let queue = DispatchQueue(label: "portcullis-load.enrolment")
        let beat = DispatchSource.makeTimerSource(queue: queue)
        beat.setEventHandler { stream.yield(.beat) }
        beat.schedule(deadline: .now() + Self.progressSeconds, repeating: Self.progressSeconds)
        beat.activate()
        defer { beat.cancel() }
        for await event in events {
            let counts = await loop.ask { $0.counts }
            switch event {
            case .beat: progress(counts)
            case .finished(nil): return counts
            case .finished(let fault?): throw LoadError("enrolment: \(fault)")
            }
        }
        return EnrolmentCounts()
    }

    /// The document that asks for a device's challenge.
    fileprivate func call(of index: Int) -> String {
        var json = JSONWriter()
        json.object { json in
            json.member("purpose", ChallengePurpose.enrolment.name)
            // A phone makes its key with the challenge, and so after it.
            if !pairing.fleet.platforms.isPhone(index) {
                json.member("key_id", devices.key(index).keyID.base64)
            }
        }
        return json.text
    }

    /// The document that enrols a device: asks the stand-in for Apple to attest its key.
    fileprivate func enrolment(of index: Int, _ challenge: [UInt8]) -> String {
        devices.key(index).enrolment(
            challenge: String(decoding: challenge, as: UTF8.self),
            clientDataHash: hashing == .raw ? challenge : nil,
            at: pairing.now
        )
    }

    /// The line of a token beside the document: over the challenge, as the key is.
    fileprivate func field(of index: Int, _ signed: [UInt8], _ mint: inout TokenMint?) -> String {
        let hash = SHA256.digest(of: signed).array
        guard let name = mint?.field, let token = mint?.token(of: devices.key(index), over: hash)
        else { return "" }
        return String(decoding: name + Array(": ".utf8) + token, as: UTF8.self) + "\r\n"
    }
}

/// Enrols devices in a gateway through its endpoints, as an honest app does. Each device asks for a
/// challenge and names its key, waits as long as the gateway asks, has its key attested once, and
/// sends the attestation until the gateway takes it.
private final class EnrolmentLoop: ConnectionOwner {
    private let plan: FleetEnrolment
    private let pool: ConnectionPool
    private let tell: @Sendable (String?) -> Void
    private var next = 0
    private var waiting = WaitingDevices()
    /// The documents of devices whose keys are attested and not enrolled.
    private var documents: [Int: (text: String, challenge: [UInt8])] = [:]
    private var mint: TokenMint?
    private var alarm: Alarm?
    private(set) var counts = EnrolmentCounts()
    private var isOver = false

    /// - tell: gets the fault that ended the enrolment, or `nil`.
    init(_ plan: FleetEnrolment, on loop: EventLoop, tell: @escaping @Sendable (String?) -> Void) {
        (self.plan, self.tell, mint) = (plan, tell, plan.mint)
        pool = ConnectionPool(
            callsTo: plan.server,
            count: plan.connections,
            timeout: FleetEnrolment.timeout,
            on: loop
        )
        (pool.connectTimeout, pool.isRefilling) = (FleetEnrolment.timeout, true)
    }

    func start() {
        do throws(SocketError) {
            alarm = try Alarm(on: pool.loop)
        } catch {
            return finish("\(error)")
        }
        // Cycles on purpose: event loop, alarm and connections live as long as the process.
        alarm?.rang = { [self] in work() }
        pool.owner = self
        pool.fill()
    }

    private func finish(_ fault: String?) {
        guard !isOver else { return }
        isOver = true
        pool.isRefilling = false
        tell(fault)
    }

    /// Gives every idle connection some work.
    func work() {
        let now = MonotonicClock.nanoseconds
        while !isOver, let exchange = pool.idle.first {
            guard let device = waiting.take(now: now) ?? takeNext() else {
                if let time = waiting.nextAt {
                    alarm?.set(nanoseconds: time)
                } else if pool.idle.count == pool.openCount {
                    // All other connections are idle too, so all requests are answered.
                    finish(nil)
                }
                return
            }
            pool.idle.removeFirst()
            exchange.send(message(for: device), for: LoadRequest(device: device))
        }
    }

    private func takeNext() -> Int? {
        guard next < plan.pairing.fleet.count else { return nil }
        defer { next += 1 }
        return next
    }

    private func message(for device: Int) -> Message {
        let endpoints = plan.pairing.configuration.endpointsPath
        guard let document = documents[device] else {
            return Message(to: "\(endpoints)/challenges", at: plan.host, plan.call(of: device))
        }
        let field = plan.field(of: device, document.challenge, &mint)
        return Message(to: "\(endpoints)/keys", at: plan.host, document.text, field: field)
    }

    func failed(
        _ exchange: LoadExchange?,
        _ failure: ExchangeFailure,
        in pool: ConnectionPool
    ) {
        finish("\(plan.host): \(failure.rawValue)")
    }

    func answered(_ exchange: LoadExchange) {
        let answer = exchange.answer
        guard let device = exchange.request.device else {
            return finish("an answer that no device has asked for")
        }
        switch (answer.status, documents[device]) {
        case (200, nil):
            guard let challenge = answer.challenges.first else { return finish(answer.text) }
            counts.attested += 1
            documents[device] = (plan.enrolment(of: device, challenge), challenge)
            waiting.add(device, at: 0)
        case (201, _?):
            counts.enrolled += 1
            documents[device] = nil
        case (200, _?):
            counts.known += 1
            documents[device] = nil
        case (429, _), (503, _):
            // The gateway sets the time, since it limits the rate.
            counts.throttled += 1
            waiting.add(device, at: MonotonicClock.nanoseconds + Self.wait(answer.retryAfter))
        default: finish(answer.text)
        }
    }

    /// Retry-After in nanoseconds, with up to a second and a tenth more: the field has whole
    /// seconds, and all clients with one value would come at once.
    private static func wait(_ retryAfter: Int) -> UInt64 {
        let told = UInt64(max(retryAfter, 1)) * 1_000_000_000
        return told + RandomBytes.word() % (1_000_000_000 + told / 10)
    }
}
