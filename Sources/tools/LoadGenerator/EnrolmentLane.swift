import AppAttest
import ByteCoding
import Cryptography
import DequeModule
import Lanes
import Rules
import SoftwareAuthenticator

/// Brings devices into a gateway through its endpoints: a challenge, then the key.
final class EnrolmentLane: ConnectionOwner {
    let scratch = ResponseScratch(method: "POST")
    private let plan: EnrolmentRun
    private let lane: Lane
    private let tell: @Sendable (EnrolmentNews) -> Void
    private var challenges: [[UInt8]] = []
    private var next = 0
    private var again: [Int] = []
    private var idle: Deque<LoadConnection> = []
    private var open = 0
    private var alarm: Alarm?
    private var resumeAt: UInt64 = 0
    private(set) var counts = EnrolmentCounts()
    private var isOver = false

    init(_ plan: EnrolmentRun, on lane: Lane, tell: @escaping @Sendable (EnrolmentNews) -> Void) {
        self.plan = plan
        self.lane = lane
        self.tell = tell
    }

    func start() {
        do throws(SocketError) {
            let alarm = try Alarm(on: lane)
            // A cycle on purpose: lane and alarm live as long as the process.
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
            on: lane
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

    /// Gives every idle connection something to do.
    private func work() {
        guard !isOver else { return }
        let now = MonotonicClock.nanoseconds
        while let connection = idle.popFirst() {
            guard now >= resumeAt else {
                idle.prepend(connection)
                alarm?.set(nanoseconds: resumeAt)
                return
            }
            guard let device = again.popLast() ?? takeNext() else {
                idle.append(connection)
                // All others idle too: everything was answered.
                if idle.count == open { finish(nil) }
                return
            }
            guard let challenge = challenges.popLast() else {
                again.append(device)
                connection.errand.device = nil
                send("challenges", #"{"purpose":"enrolment","count":8}"#, on: connection)
                continue
            }
            connection.errand.device = device
            send("keys", plan.enrolment(of: device, challenge), on: connection)
        }
    }

    private func takeNext() -> Int? {
        guard next < plan.fleet.count else { return nil }
        defer { next += 1 }
        return next
    }

    private func send(_ name: String, _ document: String, on connection: LoadConnection) {
        let head = """
            POST \(plan.endpoints)/\(name) HTTP/1.1\r
            Host: \(plan.host)\r
            Content-Type: application/json\r
            Content-Length: \(document.utf8.count)\r
            \r
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
        take(connection.answer, connection.errand.device)
        if connection.isClosed {
            open -= 1
            openConnection()
        } else {
            idle.append(connection)
        }
        work()
    }

    private func take(_ answer: Answer, _ device: Int?) {
        switch (answer.status, device) {
        case (200, nil): challenges += LoadLane.challenges(in: answer.content) ?? []
        case (201, _): counts.enrolled += 1
        case (200, _): counts.known += 1
        case (429, let device):
            // The gateway says when; its rate is not to be fought.
            counts.throttled += 1
            let wait = UInt64(max(answer.retryAfter, 1)) * 1_000_000_000
            resumeAt = max(resumeAt, MonotonicClock.nanoseconds + wait)
            if let device { again.append(device) }
        default: finish(answer.text)
        }
    }
}
