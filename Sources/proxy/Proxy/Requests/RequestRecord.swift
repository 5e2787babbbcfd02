import HTTPWire
import Rules
import Services
import Verification

/// The data about a request for the log and the metrics.
struct RequestRecord {
    /// Monotonic nanoseconds.
    let startedAt: UInt64
    let spoken: ClientProtocol
    /// The id that a trusted proxy or the gateway gave.
    var id: RequestID
    /// The trace that the request belongs to, where it is known.
    var trace: TraceID?
    /// The caller's span in that trace; 0 where it is not known.
    var parentSpan: UInt64 = 0
    /// What is recorded for the request's spans; `nil` where it is not recorded.
    var spans: RequestSpans?
    /// It is recorded only since it was refused.
    var isSpare = false
    /// The fields naming the request that go to the origin unchanged.
    var carried = FieldKindSet()
    /// Why the gateway has answered instead of the origin.
    var outcome: LocalOutcome?
    /// What the request asks for, as far as the log or `why` may show it.
    var asked = Asked()
    /// The line that its signed verdict names; `nil` where verdicts are not signed.
    var line: Line?
    /// What the client says about itself.
    var claims = ClientClaims()
    private(set) var times = RequestTimes()
    /// What was found of the integrity token of an enrolment.
    var integrity: IntegrityNote?
    /// The other rules that would also refuse a disputed request, where it went on. The report
    /// counts it at each of them.
    var disputants: [Rule] = []
    /// The result of the origin's App-Attest-Device-Bits.
    var deviceUpdate = DeviceUpdateNote.none
    /// 0 while nothing was answered.
    var status = 0
    /// Bytes of content in the response.
    var responseBytes: UInt64 = 0
    /// Why the request failed; empty where it did not.
    private(set) var problem = ""

    init(_ id: RequestID, startedAt: UInt64, spoken: ClientProtocol) {
        self.id = id
        self.startedAt = startedAt
        self.spoken = spoken
    }

    /// Notes the time of a part: monotonic nanoseconds.
    mutating func add(_ part: RequestTimes.Part, since: UInt64, until: UInt64) {
        times.add(part, since: since, until: until)
        spans?.add(part, since: since, until: until)
    }

    /// The client's content has come whole.
    mutating func uploaded(at now: UInt64) { add(.upload, since: startedAt, until: now) }

    /// Copies what the request asks for, and what its client claims.
    mutating func keepAsked(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) {
        asked = Asked(head, bytes)
        claims.system = head.fields.claimedSystem(bytes)
    }

    /// The first problem is the cause of all others.
    mutating func note(problem: String) {
        if self.problem.isEmpty { self.problem = problem }
    }

    /// The result of bits that an origin wants Apple to keep. The raw value is the log's word.
    enum DeviceUpdateNote: String {
        /// The response has no such bits.
        case none
        case asked
        /// The field can't be read, or Apple was not asked about the request's device.
        case ignored
    }

    /// The authority and the method as the client has written them, and the target as the origin
    /// gets it: in origin-form, or `*`.
    struct Line {
        let host: [UInt8]
        let method: [UInt8]
        let target: [UInt8]

        init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) {
            func copy(_ range: Range<Int>) -> [UInt8] {
                bytes.extracting(range).withUnsafeBufferPointer { Array($0) }
            }
            host = copy(head.authority)
            method = copy(head.methodRange)
            var target: [UInt8] = []
            HeadWriter.target(head, bytes, into: &target)
            self.target = target
        }
    }

    /// Copies of parts of a head, for use after its bytes are gone.
    struct Asked {
        var method: [UInt8] = []
        var host: [UInt8] = []
        var path: [UInt8] = []
        /// For the combined format only.
        var referer: [UInt8] = []
        var agent: [UInt8] = []

        init() {}

        init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) {
            func copy(_ range: Range<Int>) -> [UInt8] {
                bytes.extracting(range).withUnsafeBufferPointer { Array($0) }
            }
            method = copy(head.methodRange)
            host = copy(head.authority)
            path = copy(head.path)
        }

        /// Copies the further parts for the combined format.
        mutating func addCaller(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) {
            func copy(_ name: StaticString) -> [UInt8] {
                guard let value = head.fields.value(of: name, bytes) else { return [] }
                return bytes.extracting(value).withUnsafeBufferPointer { Array($0) }
            }
            referer = copy("referer")
            agent = copy("user-agent")
        }
    }
}
