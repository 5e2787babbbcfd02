import Encodings
import EventLoops
import HTTPWire
import Rules

/// A client's connection to the gateway: one request, then its answer.
final class LoadConnection: Connection {
    enum State {
        /// Leaves to `idle`, `closed`.
        case connecting
        /// Leaves to `busy`, `closed`.
        case idle
        /// Leaves to `idle`, `closed`.
        case busy
        /// Has no exit.
        case closed
    }

    /// Kept while the connection is open: a late event finds it.
    private let owner: any ConnectionOwner
    private(set) var state: State
    /// The current request.
    var message = Message()
    var request = LoadRequest()
    private(set) var answer = Answer()
    /// Keeps the content of every answer, not only of refusals.
    var keepsContent = false

    private var inbox: [UInt8] = []
    private var scanner = HeadScanner(.response)
    private var body = BodyReader(.none, limits: HeadLimits())
    private var hasHead = false

    /// Begins to connect; `nil` when the system refuses at once.
    static func open(
        _ server: ServerPlace,
        for owner: any ConnectionOwner,
        timeout milliseconds: UInt64,
        on loop: EventLoop
    ) -> LoadConnection? {
        guard let (descriptor, isConnecting) = try? Connection.open(to: server.address),
            let session = try? server.session()
        else { return nil }
        let connection = LoadConnection(
            descriptor,
            isConnecting: isConnecting,
            server,
            session.tls,
            for: owner,
            on: loop
        )
        guard (try? loop.register(connection)) != nil else {
            connection.close()
            return nil
        }
        connection.setDeadline(milliseconds: milliseconds)
        if !isConnecting { loop.resume(connection) }
        return connection
    }

    private init(
        _ descriptor: Int32,
        isConnecting: Bool,
        _ server: ServerPlace,
        _ tls: TLSSession?,
        for owner: any ConnectionOwner,
        on loop: EventLoop
    ) {
        self.owner = owner
        state = .connecting
        super.init(
            descriptor: descriptor,
            peer: server.address,
            isConnecting: isConnecting,
            tls: tls,
            on: loop
        )
    }

    /// Sends the message; the owner gets the answer or the reason why none came.
    func send(_ body: [UInt8], timeout milliseconds: UInt64) {
        state = .busy
        hasHead = false
        answer.clear()
        setDeadline(milliseconds: milliseconds)
        // A server that answers early stops reading; its answer is still to be read.
        if case .failed = write(message.head.span, body.span) { expectAnswerOfBroken() }
    }

    private func expectAnswerOfBroken() {
        expectInput()
        loop.resume(self)
    }

    private func take() {
        guard case .connecting = state else { return }
        state = .idle
        setDeadline(milliseconds: nil)
        owner.connected(self)
    }

    private func fail(_ failure: ExchangeFailure) {
        state = .closed
        close()
        owner.failed(self, failure)
    }

    override func connectEnded(_ error: SocketError?) {
        if error != nil { fail(.connectFailed) } else { take() }
    }

    override func outputFailed() { expectAnswerOfBroken() }

    override func deadlinePassed() {
        switch state {
        case .connecting: fail(.connectTimeout)
        case .busy: fail(.responseTimeout)
        case .idle, .closed: break
        }
    }

    override func inputReady() {
        switch state {
        case .connecting: take()
        case .idle:
            // RFC 9112 §9.2: data without a request is no response. An end is an end. TLS may bring
            // tickets, which have no bytes.
            if case .wouldBlock = read() { return }
            state = .closed
            close()
            owner.retired(self)
        case .busy: readAnswer()
        case .closed: break
        }
    }

    private func readAnswer() {
        while case .busy = state {
            switch read() {
            case .bytes(let bytes):
                if hasHead {
                    take(bytes.span, from: 0)
                } else if inbox.isEmpty {
                    takeHead(bytes.span)
                } else {
                    inbox.append(contentsOf: bytes)
                    let all = inbox
                    takeHead(all.span)
                }
            case .wouldBlock: return
            case .ended: return end()
            case .failed: return fail(.connectionBroken)
            }
        }
    }

    private func end() {
        guard hasHead, (try? body.close()) != nil else { return fail(.connectionBroken) }
        finish(isReusable: false)
    }

    /// Skips interim responses.
    private func takeHead(_ bytes: Span<UInt8>) {
        let scratch = owner.scratch
        var start = 0
        do throws(Malformed) {
            while let range = try scanner.nextResponse(
                in: bytes,
                from: &start,
                into: &scratch.head,
                to: scratch.method,
                upgradeSent: false,
                limits: scratch.limits,
                keeping: &inbox
            ) {
                guard scratch.head.isInterim else {
                    inbox.removeAll(keepingCapacity: true)
                    return begin(scratch, head: bytes.extracting(range), bytes: bytes, start: start)
                }
            }
        } catch {
            fail(.responseMalformed)
        }
    }

    private func begin(
        _ scratch: ResponseScratch,
        head: Span<UInt8>,
        bytes: Span<UInt8>,
        start: Int
    ) {
        hasHead = true
        answer.status = scratch.head.status
        answer.read(scratch.head.fields, head)
        isPersistent = scratch.head.isPersistent
        body = BodyReader(scratch.head.framing, limits: scratch.limits)
        take(bytes, from: start)
    }

    private var isPersistent = false

    private func take(_ bytes: Span<UInt8>, from start: Int) {
        var position = start
        let isKept = keepsContent || answer.status >= 400
        do throws(Malformed) {
            while true {
                switch try body.read(bytes, from: &position) {
                case .content(let range):
                    guard isKept, answer.content.count + range.count <= Answer.contentMax else {
                        continue
                    }
                    bytes.extracting(range).withUnsafeBufferPointer {
                        answer.content.append(contentsOf: $0)
                    }
                case .needMore: return
                case .finished: return finish(isReusable: isPersistent && position == bytes.count)
                }
            }
        } catch {
            fail(.responseMalformed)
        }
    }

    /// A request that was not sent to its end makes the connection useless.
    private func finish(isReusable: Bool) {
        setDeadline(milliseconds: nil)
        if isReusable, unsentBytes == 0 {
            state = .idle
        } else {
            state = .closed
            close()
        }
        owner.answered(self)
    }
}

/// The user of a connection: gets its events.
protocol ConnectionOwner: AnyObject {
    var scratch: ResponseScratch { get }
    /// The connection may be used from now on.
    func connected(_ connection: LoadConnection)
    /// The answer is complete; the connection is idle again, or closed.
    func answered(_ connection: LoadConnection)
    /// The connection is closed. Its request, or the attempt to connect, has failed.
    func failed(_ connection: LoadConnection, _ failure: ExchangeFailure)
    /// The connection was idle, and the server has closed it.
    func retired(_ connection: LoadConnection)
}

/// The facts about a connection's request by which its answer is judged.
struct LoadRequest {
    var sending = Sending.good
    /// The number of the request on its event loop.
    var number: UInt64 = 0
    /// The device that is busy with it.
    var device: Int?
    /// The place in the rollout of the key that has signed it; `nil` where that does not matter.
    var bucket: Bucket?
    /// When the request was due, and when it was sent: nanoseconds of the monotonic clock.
    var due: UInt64 = 0
    var sentAt: UInt64 = 0
}

/// The answer to a request; its memory is used again.
struct Answer {
    var status = 0
    /// The value of App-Attest-Challenge; empty for none.
    var challenge: [UInt8] = []
    /// Seconds of Retry-After, a day at most; 0 for none.
    var retryAfter = 0
    /// The content of a refusal or of a call to an endpoint, up to the bound below.
    var content: [UInt8] = []

    /// The most bytes that are kept.
    static let contentMax = 16 << 10

    mutating func clear() {
        status = 0
        challenge.removeAll(keepingCapacity: true)
        retryAfter = 0
        content.removeAll(keepingCapacity: true)
    }

    /// The origin has answered, or the gateway has served its own endpoint.
    var isAdmission: Bool { status >= 200 && status < 400 }

    private static let reasonStart = Array("\"reason\":\"".utf8)

    /// Where the value of `reason` is in a problem document of the gateway. It is searched, not
    /// parsed, since each refusal needs it.
    var reason: Range<Int>? {
        let start = Self.reasonStart
        guard content.count > start.count else { return nil }
        for place in 0...(content.count - start.count)
        where content[place] == start[0] && content[place...].starts(with: start) {
            let first = place + start.count
            let end = content[first...].firstIndex(of: UInt8(ascii: "\"")) ?? content.count
            return first..<end
        }
        return nil
    }

    /// The reason for people; the status alone where the answer gives no reason.
    var text: String {
        guard let reason else { return "\(status)" }
        return "\(status) \(String(decoding: content[reason], as: UTF8.self))"
    }
}

extension Answer {
    private static let challengeName = Array("app-attest-challenge".utf8)
    private static let retryName = Array("retry-after".utf8)

    mutating func read(_ section: borrowing FieldSection, _ bytes: Span<UInt8>) {
        for index in section.fields.indices {
            let field = section.fields[index]
            if Self.equal(bytes, range: field.name, name: Self.challengeName) {
                bytes.extracting(field.value).withUnsafeBufferPointer {
                    challenge.append(contentsOf: $0)
                }
            } else if Self.equal(bytes, range: field.name, name: Self.retryName) {
                retryAfter = field.value.reduce(0) { min($0 * 10 + Int(bytes[$1] & 15), 86_400) }
            }
        }
    }

    /// RFC 9110 §5.1: names are compared without case.
    private static func equal(_ bytes: Span<UInt8>, range: Range<Int>, name: [UInt8]) -> Bool {
        guard range.count == name.count else { return false }
        for step in 0..<name.count where bytes[range.lowerBound + step] | 0x20 != name[step] {
            // A hyphen has that bit already.
            return false
        }
        return true
    }
}

/// Memory into which all connections of an event loop read heads.
final class ResponseScratch {
    var head = ResponseHead()
    let limits = HeadLimits()
    /// The method of the request: an answer to HEAD has no content.
    let method: HTTPWire.Method

    init(method: String) { self.method = method == "HEAD" ? .head : .other }
}
