import ClientStreams
import HTTPWire
import Origins
import Services
import TLSSession
import Telemetry
import Verification

/// What is remembered of a request for the log and the metrics.
struct RequestRecord {
    /// Monotonic nanoseconds.
    let startedAt: UInt64
    let spoken: ClientProtocol
    /// Of a trusted proxy, or our own.
    var id: RequestID
    /// The trace that the request belongs to, where it is known.
    var trace: RequestID?
    /// Which of the fields that name the request go to the origin as they came.
    var carried = FieldKindSet()
    /// When a server took the request; of the last attempt.
    var sentAt: UInt64 = 0
    /// Nanoseconds for which it waited for a place at a server.
    var queued: UInt64 = 0
    var servedBy: (server: OriginServer, isReused: Bool)?
    /// When the head of a response must have come, over all tries: milliseconds of the lane's
    /// clock; 0 before the first try.
    var respondBy: UInt64 = 0
    /// The server that was tried last, where none was reached.
    var lastTried: OriginServer?
    /// Why the TLS handshake with that server failed, where it did.
    var originTLS: TLSFailure.Reason?
    /// Why the gateway has answered in place of the origin.
    var outcome: LocalOutcome?
    /// What was asked, where the log or `why` may say it.
    var asked = Asked()
    /// The service that was asked, as the log names it; also for a path that no service has.
    var service: String?
    /// The build that the client claims, where a device might not have signed it.
    var claimedVersion: AppVersion?
    /// What became of the origin's App-Attest-Device-Bits.
    var deviceUpdate = DeviceUpdateNote.none
    /// Whether its verdict was counted.
    var verdictCount = VerdictCount.none
    /// The metrics that it asks for.
    var format = Exposition.Format.prometheus
    /// 0 while nothing was answered.
    var status = 0
    /// Bytes of content in the response.
    var responseBytes: UInt64 = 0
    /// Why the request went wrong; empty where it did not.
    private(set) var problem = ""

    init(_ id: RequestID, startedAt: UInt64, spoken: ClientProtocol) {
        self.id = id
        self.startedAt = startedAt
        self.spoken = spoken
    }

    /// The first problem is the cause of all others.
    mutating func note(problem: String) {
        if self.problem.isEmpty { self.problem = problem }
    }

    /// Whether a verdict was counted.
    enum VerdictCount {
        /// It was not, and need not be.
        case none
        /// It will be when it is final: content may change it.
        case due
        case done
    }

    /// What becomes of bits that an origin would have Apple keep. The raw value is the log's word.
    enum DeviceUpdateNote: String {
        /// It says nothing of them.
        case none
        case asked
        /// It can't be read, or Apple was not asked about the request's device.
        case ignored
    }

    /// Copies of what a head asks, for when its bytes are gone.
    struct Asked {
        var method: [UInt8] = []
        var host: [UInt8] = []
        var path: [UInt8] = []
        /// For the combined format alone.
        var referer: [UInt8] = []
        var agent: [UInt8] = []

        init() {}

        init(_ head: borrowing RequestHead, _ octets: Span<UInt8>) {
            func copy(_ range: Range<Int>) -> [UInt8] {
                octets.extracting(range).withUnsafeBufferPointer { Array($0) }
            }
            method = copy(head.methodRange)
            host = copy(head.authority)
            path = copy(head.path)
        }

        /// Copies what the combined format has besides.
        mutating func addCaller(_ head: borrowing RequestHead, _ octets: Span<UInt8>) {
            func copy(_ name: StaticString) -> [UInt8] {
                guard let value = head.fields.value(of: name, octets) else { return [] }
                return octets.extracting(value).withUnsafeBufferPointer { Array($0) }
            }
            referer = copy("referer")
            agent = copy("user-agent")
        }
    }
}
