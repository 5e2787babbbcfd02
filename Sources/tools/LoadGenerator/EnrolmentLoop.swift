import AppAttest
import Cryptography
import DequeModule
import Encodings
import EventLoops
import Rules
import SoftwareAuthenticator

/// Enrols devices in a gateway through its endpoints, as an honest app does. Each device asks for a
/// challenge and names its key, waits as long as the gateway asks, has its key attested once, and
/// sends the attestation until the gateway takes it.
final class EnrolmentLoop: ConnectionOwner {
    let scratch = ResponseScratch(method: "POST")
    private let plan: EnrolmentRun
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
        _ plan: EnrolmentRun,
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
            timeout: EnrolmentRun.timeout,
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
        let head = """
            POST \(plan.endpoints)/\(name) HTTP/1.1\r
            Host: \(plan.host)\r
            Content-Type: application/json\r
            Content-Length: \(document.utf8.count)\r
            \(field)\r
            \(document)
            """
        connection.message = Message(head: Array(head.utf8))
        connection.send([], timeout: EnrolmentRun.timeout)
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
        let seconds = UInt64(min(max(retryAfter, 1), 86_400))
        let told = seconds * 1_000_000_000
        return told + RandomBytes.word() % (1_000_000_000 + told / 10)
    }
}
