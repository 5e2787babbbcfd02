import ConfigurationReading
import Dispatch
import Encodings
import Logging
import OutboundCalls
import Proxy
import Services
import Synchronization
import Telemetry

/// Sends the spans of all event loops to a collector by OTLP/HTTP, as a ``SpanQueue`` says.
///
/// An event loop that hands over spans takes a lock for the time of a few assignments, and waits
/// for nothing else.
final class SpanExporter: Sendable {
    private struct Board {
        var queue: SpanQueue
        var settings: TracingSettings
        /// Whether the last call has failed, so that it was said.
        var isFailing = false
    }

    private let board: Mutex<Board>
    private let https: HTTPSCalls
    private let log: Logger
    private let queue = DispatchQueue(label: "portcullis.spans")

    init(_ settings: TracingSettings, over https: HTTPSCalls, log: Logger) {
        let machine = SpanQueue(max: settings.queueMax)
        board = Mutex(Board(queue: machine, settings: settings))
        (self.https, self.log) = (https, log)
    }

    func reload(_ settings: TracingSettings) {
        board.withLock { board in
            board.settings = settings
            board.queue.max = settings.queueMax
        }
    }

    /// What is recorded by a configuration; `nil` for nothing.
    func recording(_ settings: TracingSettings) -> SpanRecording? {
        guard settings.endpoint != nil else { return nil }
        return SpanRecording(ratio: settings.ratio, keepsRefusals: settings.keepsRefusals) {
            [self] bundle in
            let entry = SpanQueue.Entry(spans: bundle.json, count: bundle.count)
            perform(board.withLock { $0.queue.add(entry, isSpare: bundle.isSpare) })
        }
    }

    var facts: TracingFacts {
        board.withLock { board in
            TracingFacts(
                exported: board.queue.exported,
                lost: SpanQueue.Loss.allCases.map {
                    (why: $0.rawValue, count: board.queue.lost[$0] ?? 0)
                }
            )
        }
    }

    private func perform(_ action: SpanQueue.Action) {
        switch action {
        case .none: break
        case .wait(let milliseconds):
            queue.asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { [self] in
                perform(board.withLock { $0.queue.timeIsUp() })
            }
        case .send(let spans): queue.async { [self] in send(spans) }
        }
    }

    private func send(_ spans: [UInt8]) {
        let settings = board.withLock { $0.settings }
        // A reload has removed the collector.
        guard let endpoint = settings.endpoint else { return ended(.refused, "no endpoint") }
        var request = HTTPSRequest(url: endpoint, timeout: settings.timeout)
        request.contentType = "application/json"
        request.fields = settings.headers.map { line in
            let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
            return (parts[0], parts.count > 1 ? String(parts[1].drop { $0 == " " }) : "")
        }
        request.content = Self.document(spans, settings)
        request.roots = settings.roots
        request.proxy = settings.proxy
        request.allowsPlain = true
        request.answerBytesMax = 64 << 10
        https.send(request) { [self] result in
            switch result {
            case .failure(let fault): ended(.failed(retryAfter: nil), fault.detail)
            case .success(let answer):
                let outcome = SpanQueue.Outcome(
                    status: answer.status,
                    retryAfter: answer.retryAfter,
                    content: answer.content
                )
                ended(outcome, "it answers \(answer.status)")
            }
        }
    }

    private func ended(_ outcome: SpanQueue.Outcome, _ detail: String) {
        let isFailing: Bool
        switch outcome {
        case .taken, .takenInPart: isFailing = false
        case .failed, .refused: isFailing = true
        }
        let (action, hasChanged) = board.withLock { board in
            let hasChanged = board.isFailing != isFailing
            board.isFailing = isFailing
            return (board.queue.ended(outcome), hasChanged)
        }
        if hasChanged, isFailing {
            log.warning(
                """
                the collector of tracing.endpoint takes no spans, \(detail); requests go on \
                without it, and spans that find no room are dropped and counted in \
                spans_dropped_total
                """
            )
        } else if hasChanged {
            log.notice("the collector of tracing.endpoint takes spans again")
        }
        perform(action)
    }

    /// The schema of the names of attributes.
    private static let schema = "https://opentelemetry.io/schemas/1.29.0"

    /// An ExportTraceServiceRequest in OTLP's JSON.
    private static func document(_ spans: [UInt8], _ settings: TracingSettings) -> [UInt8] {
        var attributes = [
            ("service.name", settings.serviceName), ("service.version", ProgramVersion.text),
            ("host.name", SyslogLink.hostName),
        ]
        attributes += settings.resource.map { text in
            let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
            return (parts[0], parts.count > 1 ? parts[1] : "")
        }
        var resource = JSONWriter(.compact)
        resource.object { out in
            out.objects("attributes", of: attributes) { out, attribute in
                out.member("key", attribute.0)
                out.object("value") { $0.member("stringValue", attribute.1) }
            }
        }
        var scope = JSONWriter(.compact)
        scope.object { out in
            out.member("name", "portcullis")
            out.member("version", ProgramVersion.text)
        }
        let schema = "\"schemaUrl\":\"\(Self.schema)\""
        return Array("{\"resourceSpans\":[{\"resource\":".utf8) + resource.bytes
            + Array(",\(schema),\"scopeSpans\":[{\"scope\":".utf8) + scope.bytes
            + Array(",\(schema),\"spans\":[".utf8) + spans + Array("]}]}]}".utf8)
    }
}
