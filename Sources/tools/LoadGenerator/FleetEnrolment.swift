import AppAttest
package import ConfigurationReading
import Cryptography
import DequeModule
import Dispatch
import Encodings
import EventLoops
import Rules
package import Signatures
import SoftwareAuthenticator
import Tokens

/// The enrolment of a fleet through a gateway's endpoints, at the highest rate that the gateway
/// allows.
package struct FleetEnrolment: Sendable {
    let server: ServerPlace
    let host: String
    let endpoints: String
    let fleet: DeviceFleet
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
        _ fleet: DeviceFleet,
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
private enum EnrolmentNews: Sendable {
    /// All devices are enrolled, or a fault ended the enrolment.
    case finished(String?)
}

/// Enrols devices in a gateway through its endpoints, as an honest app does. Each device asks for a
/// challenge and names its key, waits as long as the gateway asks, has its key attested once, and
/// sends the attestation until the gateway takes it.
private final class EnrolmentLoop: ConnectionOwner {
    let scratch = ResponseScratch(method: "POST")
    private let plan: FleetEnrolment
    private let loop: EventLoop
    private let tell: @Sendable (EnrolmentNews) -> Void
    private var next = 0
    private var waiting = WaitingDevices()
    /// The documents of devices whose keys are attested and not enrolled.
    private var documents: [Int: (text: String, challenge: [UInt8])] = [:]
    private var mint: TokenMint?
    private var idle: Deque<LoadConnection> = []
    private var open = 0
    private var alarm: Alarm?
    private(set) var counts = EnrolmentCounts()
    private var isOver = false

    init(
        _ plan: FleetEnrolment,
        on loop: EventLoop,
        tell: @escaping @Sendable (EnrolmentNews) -> Void
    ) {
        self.plan = plan
        mint = plan.mint
        self.loop = loop
        self.tell = tell
    }

    func start() {
        do throws(SocketError) {
            let alarm = try Alarm(on: loop)
            // A cycle on purpose: event loop and alarm live as long as the process.
            alarm.rang = { [self] in work() }
            self.alarm = alarm
        } catch {
            return finish("\(error)")
        }
        for _ in 0..<plan.connections { openConnection() }
    }

    private func openConnection() {
        let made = LoadConnection.open(
            plan.server,
            for: self,
            timeout: FleetEnrolment.timeout,
            on: loop
        )
        guard let made else { return finish("no connection could be made") }
        made.keepsContent = true
        open += 1
    }

    private func finish(_ fault: String?) {
        guard !isOver else { return }
        isOver = true
        tell(.finished(fault))
    }

    /// Gives every idle connection some work.
    private func work() {
        guard !isOver else { return }
        let now = MonotonicClock.nanoseconds
        while let connection = idle.popFirst() {
            guard let device = waiting.take(now: now) ?? takeNext() else {
                idle.append(connection)
                if let time = waiting.nextAt {
                    alarm?.set(nanoseconds: time)
                } else if idle.count == open {
                    // All other connections are idle too, so all requests are answered.
                    finish(nil)
                }
                return
            }
            connection.request.device = device
            if let document = documents[device] {
                let token = plan.token(of: device, document.challenge, &mint)
                send("keys", document.text, token, on: connection)
            } else {
                send("challenges", plan.call(of: device), on: connection)
            }
        }
    }

    private func takeNext() -> Int? {
        guard next < plan.fleet.count else { return nil }
        defer { next += 1 }
        return next
    }

    private func send(
        _ name: String,
        _ document: String,
        _ token: [UInt8]? = nil,
        on connection: LoadConnection
    ) {
        let text = { (bytes: [UInt8]) in String(decoding: bytes, as: UTF8.self) }
        let field = token.map { "\(text(mint?.field ?? [])): \(text($0))\r\n" } ?? ""
        connection.message = Message(
            to: "\(plan.endpoints)/\(name)",
            at: plan.host,
            document,
            field: field
        )
        connection.send([], timeout: FleetEnrolment.timeout)
    }

    func connected(_ connection: LoadConnection) {
        idle.append(connection)
        work()
    }

    func retired(_ connection: LoadConnection) {
        open -= 1
        idle.removeAll { $0 === connection }
        openConnection()
    }

    func failed(_ connection: LoadConnection, _ failure: ExchangeFailure) {
        finish("\(plan.host): \(failure.rawValue)")
    }

    func answered(_ connection: LoadConnection) {
        take(connection.answer, connection.request.device)
        if connection.isClosed {
            open -= 1
            openConnection()
        } else {
            idle.append(connection)
        }
        work()
    }

    private func take(_ answer: Answer, _ device: Int?) {
        guard let device else { return finish("an answer that no device has asked for") }
        switch (answer.status, documents[device]) {
        case (200, nil):
            guard let challenge = LoadLoop.challenges(in: answer.content)?.first else {
                return finish(answer.text)
            }
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
