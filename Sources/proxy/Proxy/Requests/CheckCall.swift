import Encodings
import EventLoops
import HTTPWire
import Services
import Telemetry
import Verification

/// A call of `envoy.service.auth.v3.Authorization/Check`: Envoy asks about a request over gRPC.
///
/// For the connection it is a request. For the request that its message names it is the client's
/// stream, so that request is admitted, judged and answered as one that is asked about over HTTP.
/// The answer becomes the call's message. A call without a readable message is answered by its own
/// status, which Envoy takes for a failure.
final class CheckCall {
    private enum State {
        /// The message comes. Leaves to `answering`, `over`.
        case collecting
        /// The message's request, or the call itself, is being answered. Leaves to `over`.
        case answering(Exchange)
        case over
    }

    private static let path = "/envoy.service.auth.v3.Authorization/Check" as StaticString
    /// The flag of compression, and the message's length.
    private static let prefixCount = 5

    private let proxy: ProxyLoop
    private let stream: any ClientStream
    private var state = State.collecting
    /// The call's own head.
    private var head: [UInt8] = []
    /// The message with its prefix, as far as it has come.
    private var message: [UInt8] = []
    /// Bytes of it that are counted as held.
    private var counted = 0
    /// Content of the message's request that was not read yet.
    private var content: [UInt8] = []
    private(set) var contentCount: UInt64 = 0
    private(set) var contentFraming = BodyFraming.none
    private(set) var asked: AskedRequest?

    init(_ proxy: ProxyLoop, for stream: any ClientStream) {
        self.proxy = proxy
        self.stream = stream
    }

    /// Whether a request is such a call. All clients of gRPC say that they take trailers. Envoy
    /// does not let its own clients say it in a question over HTTP.
    static func isAsked(by head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Bool {
        guard case .plain? = head.grpcForm(bytes), head.acceptsTrailers(bytes) else { return false }
        return path.withUTF8Buffer { path in
            let target = bytes.extracting(head.target)
            // The pointer lives for the call only and is read below its count.
            return target.withUnsafeBufferPointer { $0.elementsEqual(path) }
        }
    }

    // MARK: The message

    private func collect() {
        switch stream.readContent({ take($0) }) {
        case .some: stream.resumeReading()
        case .complete: complete()
        case .malformed: refuse(.fault(.questionUnclear))
        case .none, .stopped, .closed: break
        }
    }

    /// Takes a piece; `false` when the call was answered.
    private func take(_ piece: Span<UInt8>) -> Bool {
        let count = message.count + piece.count
        let max = proxy.settings.limits.questionMessageMax
        guard count <= Self.prefixCount + max else {
            refuse(.refused(.contentTooLarge))
            return false
        }
        guard proxy.held.takeMemory(piece.count, max: proxy.settings.limits.heldMemoryMax) else {
            refuse(.refused(.heldFull))
            return false
        }
        counted += piece.count
        // The pointer lives for the call, and the copy is made inside it.
        piece.withUnsafeBufferPointer { message.append(contentsOf: $0) }
        return true
    }

    private func release() {
        proxy.held.giveBackMemory(counted)
        counted = 0
        message = []
    }

    /// The call has one message, which is not compressed (gRPC's "Length-Prefixed-Message").
    private func complete() {
        stream.stopDeadline()
        guard message.count >= Self.prefixCount, message[0] == 0,
            message[1...4].reduce(0, { $0 << 8 | Int($1) }) == message.count - Self.prefixCount
        else { return refuse(.fault(.questionUnclear)) }
        let limits = proxy.settings.limits.requestHead
        let bytes = message
        do throws(CheckRequest.Fault) {
            ask(try CheckRequest(bytes.span, from: Self.prefixCount, limits), bytes.span)
        } catch {
            refuse(.fault(.questionUnclear))
        }
    }

    /// Answers the call by its own status: its message can't be read.
    private func refuse(_ outcome: LocalOutcome) {
        release()
        begin(Exchange(proxy, for: stream, RequestFacts(.post, grpc: .plain)), unclear: outcome)
    }

    private func begin(_ exchange: Exchange, unclear outcome: LocalOutcome) {
        state = .answering(exchange)
        let own = head
        if let fault = proxy.heads.fault(in: own.span, of: peer, proxy.settings.limits) {
            // A reload has lowered the limits since the head was read.
            return exchange.begin(own.span, fault: fault)
        }
        exchange.perform(Admission(exchange).action(own.span, unclear: outcome))
    }

    // MARK: The request

    /// Has the message's request judged.
    private func ask(_ request: CheckRequest, _ bytes: Span<UInt8>) {
        let limits = proxy.settings.limits.requestHead
        guard let named = request.head(bytes, limits) else {
            release()
            let unclear = Exchange(proxy, for: self, RequestFacts(.post))
            return begin(unclear, unclear: .fault(.questionUnclear))
        }
        bytes.extracting(request.content).withUnsafeBufferPointer { content = Array($0) }
        if !content.isEmpty { contentFraming = .length(UInt64(content.count)) }
        message = []
        let head = named.bytes
        let heads = proxy.heads
        let fault = named.fault ?? heads.fault(in: head.span, of: peer, proxy.settings.limits)
        var facts = RequestFacts.malformed
        var misleading: [String] = []
        if fault == nil {
            facts = RequestFacts(heads.request, head.span, isPooled: true, isQuestion: true)
            misleading = heads.request.fields.misleading(head.span)
        }
        asked = AskedRequest(
            peer: request.source(bytes),
            isExact: named.isExact,
            isWhole: named.isWhole,
            misleading: misleading
        )
        let exchange = Exchange(proxy, for: self, facts)
        state = .answering(exchange)
        exchange.begin(head.span, fault: fault)
    }
}

extension CheckCall: ClientStreamOwner {
    func begin(_ bytes: Span<UInt8>, fault: Malformed.Reason?) {
        precondition(fault == nil, "CheckCall: its head was read")
        head = bytes.withUnsafeBufferPointer { Array($0) }
        stream.awaitContent()
        collect()
    }

    func contentReady() {
        switch state {
        case .collecting: collect()
        case .answering(let exchange): exchange.contentReady()
        case .over: break
        }
    }

    func contentTimedOut() {
        guard case .collecting = state else { return }
        refuse(.fault(.bodyTimeout))
    }

    func clientDrained() { if case .answering(let exchange) = state { exchange.clientDrained() } }

    func clientBroke() -> Bool {
        if case .answering(let exchange) = state { exchange.clientBroke() } else { true }
    }

    func clientClosed(_ why: ClientEnd) {
        let before = state
        state = .over
        release()
        content = []
        if case .answering(let exchange) = before { exchange.clientClosed(why) }
    }

    var isUploaded: Bool {
        switch state {
        case .collecting: false
        case .answering(let exchange): exchange.isUploaded
        case .over: true
        }
    }
}

// What the message's request sees of its client. All of its content is here.
extension CheckCall: ClientStream {
    var peer: ClientPeer { stream.peer }
    var peerUser: UInt32? { stream.peerUser }
    var socketEnds: (peerPort: UInt16, own: SocketAddress) { stream.socketEnds }
    var spoken: ClientProtocol { stream.spoken }
    var flow: Int { stream.flow }

    var isContentComplete: Bool { content.isEmpty }
    var hasContent: Bool { !content.isEmpty }
    var hasWholeContent: Bool { !content.isEmpty }

    func takeWholeContent(max: UInt64) -> [UInt8]? {
        UInt64(content.count) <= max ? takeContent() : nil
    }

    func dropContent() -> Bool {
        _ = takeContent()
        return true
    }

    func readContent(_ take: (Span<UInt8>) -> Bool) -> ContentRead {
        guard !content.isEmpty else { return .complete }
        let bytes = takeContent()
        return take(bytes.span) ? .complete : .stopped
    }

    private func takeContent() -> [UInt8] {
        defer {
            content = []
            release()
        }
        contentCount &+= UInt64(content.count)
        return content
    }

    func resumeReading() {}
    func awaitContent() {}
    func expectNothing() {}
    func stopDeadline() {}
    func sendContinue() {}

    var unsentBytes: Int { stream.unsentBytes }

    @discardableResult
    func respond(_ response: LocalResponse) -> ClientOutput {
        stream.respond(response.answeringCheck())
    }

    func endAfterResponse() {}

    func finish() {
        state = .over
        release()
        stream.finish()
    }

    func pause() { stream.pause() }
    func reset() { stream.reset() }
    func close() { stream.close() }

    // A request that is asked about goes to no origin.

    func sendInterim(_ head: borrowing ResponseHead, _ bytes: Span<UInt8>) { impossible() }

    func beginResponse(
        _ head: borrowing ResponseHead,
        _ bytes: Span<UInt8>,
        adding fields: [(name: StaticString, value: String)]
    ) { impossible() }

    func append(_ content: Span<UInt8>) { impossible() }
    func endContent(_ trailers: TrailerSection?) { impossible() }
    func flush() -> ClientOutput { impossible() }

    func upgrade(
        _ head: borrowing ResponseHead,
        _ bytes: Span<UInt8>,
        behind: Span<UInt8>,
        to owner: any ByteStreamOwner
    ) -> (stream: any ByteStream, early: [UInt8])? { impossible() }

    private func impossible() -> Never { preconditionFailure("CheckCall: a response of an origin") }
}

// The owners of clients' streams.
extension ProxyLoop {
    /// The owner that serves the request of a stream. ``ClientStreamOwner/begin(_:fault:)`` follows
    /// with the same head.
    func owner(
        for stream: any ClientStream,
        _ bytes: Span<UInt8>,
        fault: Malformed.Reason?
    ) -> any ClientStreamOwner {
        guard fault == nil else { return Exchange(self, for: stream, .malformed) }
        let form = stream.peer.decides?.form
        if form == .extAuthzGRPC, stream.spoken == .http2, stream.peer.isTrusted,
            CheckCall.isAsked(by: heads.request, bytes)
        {
            return CheckCall(self, for: stream)
        }
        let isPooled = settings.limits.pooledMax > 0
        let facts = RequestFacts(heads.request, bytes, isPooled: isPooled, isQuestion: form != nil)
        return Exchange(self, for: stream, facts)
    }
}
