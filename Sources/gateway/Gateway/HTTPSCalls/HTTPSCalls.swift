// Calls to another party's HTTPS service, by libcurl.
//
// Its own queue serves all calls at once. It runs while there are calls, then returns its thread to
// Dispatch. Connections are kept for later calls. The certificate and its name are verified, in TLS
// 1.2 or newer. Only https over HTTP/1.1 is used, unless a request allows http. It follows no
// redirect, and reads no cookie, netrc or environment.
//
// This code bounds the time of a call and the bytes of its answer. The caller bounds the number of
// concurrent calls.

internal import CCurl
import Dispatch
package import OutboundCalls
import Synchronization

/// Makes calls.
///
/// `@unchecked Sendable`: mutable state is in `inbox`, under its lock, or only `serve()` uses it,
/// which runs on `queue` and once at a time. `serve()` sets `calls` under the lock; other threads
/// read it under the lock, for `curl_multi_wakeup`, which libcurl allows from any thread.
package final class HTTPSCalls: HTTPSSending, @unchecked Sendable {
    /// Takes the result of a call. It is called on the queue of the calls, and must not wait.
    package typealias Completion = @Sendable (Result<HTTPSAnswer, HTTPSFault>) -> Void

    private struct Inbox {
        var requests: [(HTTPSRequest, Completion)] = []
        var isServing = false
        var isStopped = false
    }

    /// Connections that are kept for later calls.
    private static let keptConnections = 32
    /// The longest wait for events, milliseconds. libcurl wakes earlier for its own timers.
    private static let patienceMilliseconds: Int32 = 1_000

    /// The time that the end of the process waits for ``stop(_:)``: libcurl before 7.87 waits for
    /// running look-ups of names.
    static let stopTime = DispatchTimeInterval.seconds(5)

    /// libcurl's initialisation, once in a process.
    private static let isReady = ccurl_begin() == CURLE_OK

    private let queue = DispatchQueue(label: "portcullis.https")
    private let inbox = Mutex(Inbox())
    /// The multi handle; `nil` before the first call, since it has descriptors.
    private var calls: UnsafeMutableRawPointer?
    /// Calls under way.
    private var transfers: [UnsafeMutableRawPointer: Transfer] = [:]

    package init() {}

    deinit {
        // No call is under way: `serve()` references this object while it runs.
        if let calls { curl_multi_cleanup(calls) }
    }

    /// Begins a call. `done` is called once.
    package func send(_ request: HTTPSRequest, _ done: @escaping Completion) {
        inbox.withLock { inbox in
            inbox.requests.append((request, done))
            wake(&inbox)
        }
    }

    /// Ends all calls, also later ones. `ended` is called when none runs any more.
    package func stop(_ ended: @escaping @Sendable () -> Void) {
        inbox.withLock { inbox in
            inbox.isStopped = true
            wake(&inbox)
        }
        queue.async(execute: ended)
    }

    private func wake(_ inbox: inout Inbox) {
        if inbox.isServing {
            if let calls { curl_multi_wakeup(calls) }
        } else {
            inbox.isServing = true
            queue.async { self.serve() }
        }
    }

    /// Performs calls until there is none.
    private func serve() {
        while takesRequests() {
            guard let calls else { continue }
            var count: Int32 = 0
            _ = curl_multi_perform(calls, &count)
            endTransfers(of: calls)
            guard !transfers.isEmpty else { continue }
            _ = curl_multi_poll(calls, nil, 0, Self.patienceMilliseconds, nil)
        }
    }

    /// Takes the waiting calls; `false` when no work is left, and the service has ended.
    private func takesRequests() -> Bool {
        let (requests, isStopped) = inbox.withLock { inbox in
            defer { inbox.requests = [] }
            if inbox.requests.isEmpty, transfers.isEmpty || inbox.isStopped {
                inbox.isServing = false
            }
            return (inbox.requests, inbox.isStopped)
        }
        if isStopped {
            for (handle, transfer) in transfers {
                if let calls { curl_multi_remove_handle(calls, handle) }
                transfer.stop()
            }
            transfers = [:]
            for (_, done) in requests { done(.failure(HTTPSFault(.stopped, "stopped"))) }
            return !requests.isEmpty
        }
        for (request, done) in requests { begin(request, done) }
        return !requests.isEmpty || !transfers.isEmpty
    }

    private func begin(_ request: HTTPSRequest, _ done: @escaping Completion) {
        if calls == nil { open() }
        guard let calls, let transfer = Transfer(request, done),
            curl_multi_add_handle(calls, transfer.handle) == CURLM_OK
        else {
            return done(.failure(HTTPSFault(.unreachable, "libcurl does not take the call")))
        }
        transfers[transfer.handle] = transfer
    }

    private func open() {
        guard Self.isReady, let made = curl_multi_init() else { return }
        _ = ccurl_set_kept_connections(made, Self.keptConnections)
        inbox.withLock { _ in calls = made }
    }

    private func endTransfers(of calls: UnsafeMutableRawPointer) {
        var code = CURLE_OK
        while let handle = ccurl_next_end(calls, &code) {
            curl_multi_remove_handle(calls, handle)
            transfers.removeValue(forKey: handle)?.end(code)
        }
    }
}

/// One call under way. It lives on the queue of its ``HTTPSCalls``.
private final class Transfer {
    /// For the functions of libcurl.
    let handle: UnsafeMutableRawPointer
    private let fields: UnsafeMutablePointer<curl_slist>?
    private let answerBytesMax: Int
    private let keptFields: [String]
    private var content: [UInt8] = []
    private var answerFields: [String: String] = [:]
    private let done: HTTPSCalls.Completion

    /// The most milliseconds that libcurl may take: a day, which fits its numbers everywhere.
    private static let millisecondsMax: Int64 = 86_400_000
    /// The longest value of a field that is kept, in bytes; the rest of a longer one is left out.
    private static let fieldBytesMax = 1_024

    /// `nil` for a request that libcurl does not accept, or without memory.
    init?(_ request: HTTPSRequest, _ done: @escaping HTTPSCalls.Completion) {
        guard let call = curl_easy_init() else { return nil }
        handle = call
        self.done = done
        answerBytesMax = request.answerBytesMax
        keptFields = request.keptFields
        var list: UnsafeMutablePointer<curl_slist>?
        // No `Expect: 100-continue`: a server that does not know it costs a second.
        let lines =
            [request.contentType.map { "Content-Type: \($0)" }, "Expect:"].compactMap(\.self)
            + request.fields.map { "\($0.name): \($0.value)" }
        for line in lines {
            guard let longer = curl_slist_append(list, line) else { break }
            list = longer
        }
        fields = list
        guard list != nil, configure(call, request) else { return nil }
    }

    deinit {
        curl_easy_cleanup(handle)
        curl_slist_free_all(fields)
    }

    private func configure(_ call: UnsafeMutableRawPointer, _ request: HTTPSRequest) -> Bool {
        let (seconds, attoseconds) = request.timeout.components
        let milliseconds = min(seconds, 86_400) * 1_000 + attoseconds / 1_000_000_000_000_000
        // Not retained: libcurl calls back while this object has the handle, and never after.
        let me = Unmanaged.passUnretained(self).toOpaque()
        var codes = [
            request.allowsPlain ? ccurl_allow_http(call) : ccurl_allow_https_only(call),
            ccurl_leave_resolver(call),
            ccurl_set_text(call, CURLOPT_URL, request.url),
            ccurl_set_pointer(call, CURLOPT_HTTPHEADER, fields),
            ccurl_set_receiver(call, { Transfer.receive($0, size: $1, count: $2, owner: $3) }, me),
            // An empty text, so that the environment is not used.
            ccurl_set_text(call, CURLOPT_PROXY, request.proxy ?? ""),
            ccurl_set_text(call, CURLOPT_NOPROXY, ""),
            ccurl_set_text(call, CURLOPT_USERAGENT, "portcullis"),
            ccurl_set_number(call, CURLOPT_NOSIGNAL, 1),
            ccurl_set_number(call, CURLOPT_FOLLOWLOCATION, 0),
            ccurl_set_versions(call),
            ccurl_set_number(call, CURLOPT_TCP_KEEPALIVE, 1),
            ccurl_set_number(call, CURLOPT_FRESH_CONNECT, request.avoidsOldConnections ? 1 : 0),
            ccurl_set_number(
                call,
                CURLOPT_TIMEOUT_MS,
                Int(min(max(milliseconds, 1), Self.millisecondsMax))
            ),
        ]
        if let content = request.content {
            codes.append(ccurl_set_content(call, content, content.count))
        }
        if !keptFields.isEmpty {
            codes.append(
                ccurl_set_field_receiver(
                    call,
                    { Transfer.field($0, size: $1, count: $2, owner: $3) },
                    me
                )
            )
        }
        if let text = request.roots {
            codes += [
                ccurl_set_text(call, CURLOPT_CAINFO, nil),
                ccurl_set_text(call, CURLOPT_CAPATH, nil),
                ccurl_set_bytes(call, CURLOPT_CAINFO_BLOB, text, text.count),
            ]
        }
        return codes.allSatisfy { $0 == CURLE_OK }
    }

    /// Takes a piece of the answer; fewer bytes than there are end the call.
    private static func receive(
        _ bytes: UnsafeMutablePointer<CChar>?,
        size: Int,
        count: Int,
        owner: UnsafeMutableRawPointer?
    ) -> Int {
        guard let bytes, let owner else { return 0 }
        let (total, overflow) = size.multipliedReportingOverflow(by: count)
        // The object that libcurl got as this pointer. It has the handle.
        let transfer = Unmanaged<Transfer>.fromOpaque(owner).takeUnretainedValue()
        guard !overflow, total <= transfer.answerBytesMax - transfer.content.count else { return 0 }
        // libcurl owns `total` bytes at `bytes` for the time of this call; they are copied.
        transfer.content.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: total))
        return total
    }

    /// Takes a line of the answer's head.
    private static func field(
        _ bytes: UnsafeMutablePointer<CChar>?,
        size: Int,
        count: Int,
        owner: UnsafeMutableRawPointer?
    ) -> Int {
        guard let bytes, let owner else { return 0 }
        let (total, overflow) = size.multipliedReportingOverflow(by: count)
        guard !overflow else { return 0 }
        // As in `receive`: the object has the handle, and libcurl owns the bytes, which are copied.
        let transfer = Unmanaged<Transfer>.fromOpaque(owner).takeUnretainedValue()
        let line = UnsafeRawBufferPointer(start: bytes, count: total)
        transfer.take(line: String(decoding: line, as: UTF8.self))
        return total
    }

    private func take(line: String) {
        let parts = line.split(separator: ":", maxSplits: 1)
        guard parts.count == 2 else {
            // A status line: the answer after an interim one has its own fields.
            if line.hasPrefix("HTTP/") { answerFields = [:] }
            return
        }
        let name = parts[0].lowercased()
        guard keptFields.contains(name) else { return }
        let value = parts[1].drop { $0.isWhitespace }.prefix { !$0.isNewline }
        let before = answerFields[name].map { $0 + ", " } ?? ""
        let joined = (before + value).utf8.prefix(Self.fieldBytesMax)
        answerFields[name] = String(decoding: joined, as: UTF8.self)
    }

    /// Reports the result to its owner.
    func end(_ code: CURLcode) {
        guard code == CURLE_OK else {
            return done(.failure(HTTPSFault(code, hasSent: ccurl_has_sent(handle) != 0)))
        }
        let wait = ccurl_retry_after(handle)
        let answer = HTTPSAnswer(
            status: ccurl_number(handle, CURLINFO_RESPONSE_CODE),
            retryAfter: wait > 0 ? Int(clamping: wait) : nil,
            content: content,
            fields: answerFields
        )
        done(.success(answer))
    }

    /// Reports to its owner that it was stopped.
    func stop() { done(.failure(HTTPSFault(.stopped, "the calls were stopped"))) }
}

extension HTTPSFault {
    /// Maps a result of libcurl. `hasSent`: whether a byte of the request was sent.
    init(_ code: CURLcode, hasSent: Bool) {
        let detail = curl_easy_strerror(code).map { String(cString: $0) } ?? "\(code.rawValue)"
        self.init(Self.reason(code, hasSent: hasSent), detail)
    }

    private static func reason(_ code: CURLcode, hasSent: Bool) -> Reason {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT,
            CURLE_PROXY:
            .unreachable
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
            CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CERTPROBLEM:
            .tls
        case CURLE_OPERATION_TIMEDOUT: hasSent ? .timeout : .unreachable
        case CURLE_WRITE_ERROR, CURLE_FILESIZE_EXCEEDED: .answerTooLong
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING:
            .garbled
        default: hasSent ? .broken : .unreachable
        }
    }
}
