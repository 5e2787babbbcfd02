import AppAttest
import Encodings
import EventLoops
import HTTPWire
import KeyStore
import Rules
import Services
import Verification

// The spans of a request that has ended. Names are those of OpenTelemetry's semantic conventions
// for HTTP, version 1.29, and of the gateway below `portcullis.`. No key, challenge, token, query
// or content is in any of them.
extension Audit {
    /// A refused request may have a span although it was not chosen. Called before the request is
    /// written down, so that its line names the trace.
    func chooseRefused(_ recording: SpanRecording) {
        guard recording.keepsRefusals, exchange.record.spans == nil, isTurnedAway,
            let trace = exchange.record.trace ?? TraceID(proxy.ids.next())
        else { return }
        let parent = exchange.record.parentSpan
        exchange.record.trace = trace
        exchange.record.isSpare = true
        exchange.record.spans = RequestSpans(trace, parent: parent > 0 ? parent : nil, &proxy.ids)
    }

    private var isTurnedAway: Bool {
        switch exchange.record.outcome {
        case .refused, .notEnrolled, .malformed: true
        case nil, .done, .failed, .fault: false
        }
    }

    /// Hands over the spans of a request that has ended.
    func tellSpans(_ recording: SpanRecording) {
        guard let spans = exchange.record.spans else { return }
        exchange.record.spans = nil
        var all = [serverSpan(spans)]
        for part in spans.parts {
            switch part.part {
            case .judging: all.append(inner("portcullis.judge", spans, of: part))
            case .commit: all.append(inner("portcullis.commit", spans, of: part))
            case .party: all.append(inner("portcullis.party", spans, of: part))
            case .origin: all.append(originSpan(spans, until: part.until, isAnswered: true))
            case .upload: break
            }
        }
        let isAnswered = spans.parts.contains { $0.part == .origin }
        if !isAnswered, exchange.side.sentAt > 0 {
            all.append(originSpan(spans, until: MonotonicClock.nanoseconds, isAnswered: false))
        }
        var out = JSONWriter(.compact)
        out.array { out in for span in all { span.write(into: &out) } }
        recording.take(
            SpanRecording.Bundle(
                // Without the brackets.
                json: Array(out.bytes.dropFirst().dropLast()),
                count: all.count,
                isSpare: exchange.record.isSpare
            )
        )
    }

    private func inner(
        _ name: String,
        _ spans: RequestSpans,
        of part: RequestSpans.Part
    ) -> WrittenSpan {
        WrittenSpan(
            trace: spans.trace,
            number: proxy.ids.nextSpan(),
            parent: spans.own,
            kind: .internal,
            name: name,
            began: spans.wall(part.since),
            ended: spans.wall(part.until)
        )
    }

    private func serverSpan(_ spans: RequestSpans) -> WrittenSpan {
        let record = exchange.record
        let method = knownMethod
        var span = WrittenSpan(
            trace: spans.trace,
            number: spans.own,
            parent: spans.parent,
            kind: .server,
            name: method ?? "HTTP",
            began: spans.wall(record.startedAt),
            ended: spans.wall(MonotonicClock.nanoseconds)
        )
        span.attributes = [
            ("http.request.method", .text(method ?? "_OTHER")),
            ("url.path", .bytes(record.asked.path)),
            ("url.scheme", .text(exchange.peer.isSecure ? "https" : "http")),
            ("server.address", .bytes(record.asked.host)),
            ("client.address", .text(exchange.account.address.text)),
            ("network.protocol.version", .text(record.spoken.version)),
            ("portcullis.request_id", .text(record.id.text)),
        ]
        if record.status > 0 {
            span.attributes.append(("http.response.status_code", .number(record.status)))
        }
        if let service = exchange.call?.name {
            span.attributes.append(("portcullis.endpoint", .text(service)))
        } else {
            span.attributes.append(("portcullis.rule", .text(exchange.flow.rule.id)))
        }
        if let given = exchange.flow.verdictState.given {
            let outcome = given.verdict.outcome
            span.attributes.append(("portcullis.verdict", .text(outcome.word)))
            let reason = outcome.reason
            if !reason.isEmpty { span.attributes.append(("portcullis.reason", .text(reason))) }
            let isEnforced = given.enforcement == .enforced
            span.attributes.append(("portcullis.enforced", .flag(isEnforced)))
            if let platform = given.verdict.platform {
                span.attributes.append(("portcullis.platform", .text(platform.rawValue)))
            }
        }
        // HTTP semantic conventions, "Status": of a server, 4xx is no error.
        span.hasFailed = record.status >= 500 || record.status == 0
        if span.hasFailed {
            let type = record.problem.isEmpty ? "\(record.status)" : record.problem
            span.attributes.append(("error.type", .text(type)))
        }
        return span
    }

    /// - isAnswered: whether the head of a response came.
    private func originSpan(
        _ spans: RequestSpans,
        until: UInt64,
        isAnswered: Bool
    ) -> WrittenSpan {
        let record = exchange.record
        let server = exchange.side.servedBy?.server.settings
        var span = WrittenSpan(
            trace: spans.trace,
            number: spans.origin,
            parent: spans.own,
            kind: .client,
            name: knownMethod ?? "HTTP",
            began: spans.wall(exchange.side.sentAt),
            ended: spans.wall(until)
        )
        let name = server?.name ?? ""
        let scheme = server?.tls == nil ? "http" : "https"
        span.attributes = [
            ("http.request.method", .text(knownMethod ?? "_OTHER")),
            ("server.address", .text(name)),
            ("url.full", .bytes(Array("\(scheme)://\(name)".utf8) + record.asked.path)),
        ]
        if isAnswered, record.status > 0 {
            span.attributes.append(("http.response.status_code", .number(record.status)))
            span.hasFailed = record.status >= 400
            if span.hasFailed {
                span.attributes.append(("error.type", .text("\(record.status)")))
            }
        } else {
            span.hasFailed = true
            let type = record.problem.isEmpty ? "_OTHER" : record.problem
            span.attributes.append(("error.type", .text(type)))
        }
        return span
    }

    /// The method, where it is one that the conventions know; `nil` for any other.
    private var knownMethod: String? {
        let method = String(decoding: exchange.record.asked.method.prefix(16), as: UTF8.self)
        let known: Set = [
            "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
        ]
        return known.contains(method) ? method : nil
    }
}

extension ClientProtocol {
    fileprivate var version: String {
        switch self {
        case .http10: "1.0"
        case .http11: "1.1"
        case .http2: "2"
        }
    }
}
