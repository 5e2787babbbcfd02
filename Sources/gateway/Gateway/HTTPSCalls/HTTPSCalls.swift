// Calls to another party's HTTPS service, by libcurl.
//
// Its own queue serves all calls at once. It runs while there are calls, then returns its thread to
// Dispatch. Connections are kept for later calls. The certificate and its name are verified, in TLS
// 1.2 or newer. Only https over HTTP/1.1 is used. It follows no redirect, and reads no cookie,
// netrc or environment.
//
// This code bounds the time of a call and the bytes of its answer. The caller bounds the number of
// concurrent calls.

internal import CCurl
import Dispatch
import Synchronization

/// Makes calls.
///
/// `@unchecked Sendable`: mutable state is in `inbox`, under its lock, or only `serve()` uses it,
/// which runs on `queue` and once at a time. `serve()` sets `calls` under the lock; other threads
/// read it under the lock, for `curl_multi_wakeup`, which libcurl allows from any thread.
package final class HTTPSCalls: @unchecked Sendable {
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
