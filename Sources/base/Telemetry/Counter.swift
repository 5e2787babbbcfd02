/// A count of the event loops. The raw value is its place in a tally.
package enum Counter: Int, CaseIterable, Sendable {
    case connectionsAccepted
    case connectionsClosed
    case connectionsRefused
    case acceptPauses
    case loopPolls
    case tlsFailures
    case proxyStrangers
    case proxyHeadersRefused
    case requests
    case decisions
    case malformedRequests
    case http2Connections
    case http2Requests
    case http2StreamErrors
    case http2Stalls
    case http2Excesses
    case clientTimeouts
    case clientAborts
    case originConnects
    case originReuses
    case originHTTP2Connections
    case originHTTP2Ended
    case originHTTP2Streams
    case originHTTP2ResetsReceived
    case originHTTP2ResetsSent
    case originHTTP2GoAways
    case originConnectFailures
    case originTLSFailures
    case originCertificateFailures
    case originFailures
    case originTimeouts
    case originMalformed
    case retries
    case originQueued
    case originQueueFull
    case originQueueTimeouts
    case tunnels
    case tunnelsClosed
    case uploadBytes
    case downloadBytes
    case bodiesHeld
    case bodiesSpilled
    case digestMismatches
    case verifications
    case commitWaits
    case deviceChecks
    case deviceFieldsIgnored
    case challengesIssued
    case challengesForeign
    case enrolments
    case enrolmentsThrottled
    case enrolmentsNotYet
    case enrolmentChallengesAdmitted
    case sessionsOpened
    case sessionsRefused
    case sessionsEvicted
    case ratesEvicted
    case sessionPasses
    case tokenPasses
    case sessionsForeign
    case riskMarks
    case integrityMarks
    case addressConnectionsRefused
    case addressRequestsRefused
    case addressVerificationsRefused
    case addressTableFull
    case refusalLinesLeftOut

    /// The metric's name without its prefix.
    package var name: String { row.name }
    /// What it counts, in one line.
    package var help: String { row.help }

    private var row: (name: String, help: String) {
        switch self {
        case .connectionsAccepted: ("client_connections_total", "Client connections accepted.")
        case .connectionsClosed: ("client_connections_closed_total", "Client connections closed.")
        case .connectionsRefused:
            (
                "client_connections_refused_total",
                "Client connections and HTTP/2 requests over the limit."
            )
        case .acceptPauses:
            ("accept_pauses_total", "Times accepting paused for want of descriptors or memory.")
        case .loopPolls:
            (
                "event_loop_polls_total",
                "Times an event loop asked the system which sockets are ready."
            )
        case .tlsFailures:
            (
                "tls_failures_total",
                "TLS connections that failed in the handshake or by a bad record."
            )
        case .proxyStrangers:
            (
                "proxy_protocol_strangers_total",
                "Connections closed since their peer may send no PROXY header."
            )
        case .proxyHeadersRefused:
            (
                "proxy_protocol_failures_total",
                "Connections closed for want of a whole PROXY header."
            )
        case .requests: ("requests_total", "Requests whose head was complete.")
        case .decisions: ("decisions_total", "Requests that another proxy has asked about.")
        case .malformedRequests: ("malformed_requests_total", "Requests refused as malformed.")
        case .http2Connections: ("http2_connections_total", "Client connections that speak HTTP/2.")
        case .http2Requests: ("http2_requests_total", "Requests over HTTP/2.")
        case .http2StreamErrors:
            (
                "http2_stream_errors_total",
                "HTTP/2 streams refused, or ended by an error of the client's."
            )
        case .http2Stalls:
            ("http2_stalls_total", "HTTP/2 streams ended because the client took too little.")
        case .http2Excesses:
            ("http2_limits_exceeded_total", "HTTP/2 connections ended because of limits.http2.")
        case .clientTimeouts: ("client_timeouts_total", "Clients that were too slow.")
        case .clientAborts: ("client_aborts_total", "Clients that vanished during a request.")
        case .originConnects: ("origin_connects_total", "Connections made to origins.")
        case .originReuses:
            ("origin_connection_reuses_total", "Requests sent on a pooled origin connection.")
        case .originHTTP2Connections:
            ("origin_http2_connections_total", "Connections to origins that speak HTTP/2.")
        case .originHTTP2Ended:
            ("origin_http2_connections_ended_total", "Those of them that take no more requests.")
        case .originHTTP2Streams:
            ("origin_http2_streams_total", "Requests that got a stream to an origin.")
        case .originHTTP2ResetsReceived:
            (
                "origin_http2_resets_received_total",
                "Streams that an origin has reset, refused ones too."
            )
        case .originHTTP2ResetsSent:
            ("origin_http2_resets_sent_total", "Streams to an origin that the gateway has reset.")
        case .originHTTP2GoAways: ("origin_http2_goaways_total", "GOAWAY frames of origins.")
        case .originConnectFailures:
            ("origin_connect_failures_total", "Connects to origins that failed or timed out.")
        case .originTLSFailures:
            ("origin_tls_failures_total", "TLS handshakes with origins that failed.")
        case .originCertificateFailures:
            (
                "origin_certificate_failures_total",
                "Those in which the origin's certificate was refused."
            )
        case .originFailures:
            ("origin_failures_total", "Origin connections that broke during a request.")
        case .originTimeouts:
            ("origin_timeouts_total", "Origins that did not answer or went on in time.")
        case .originMalformed:
            ("origin_malformed_responses_total", "Responses refused as malformed.")
        case .retries: ("origin_retries_total", "Requests sent to an origin a second time.")
        case .originQueued:
            ("origin_queued_total", "Requests that waited for a connection to a server.")
        case .originQueueFull:
            ("origin_queue_full_total", "Requests that found no place in an origin's queue.")
        case .originQueueTimeouts:
            ("origin_queue_timeouts_total", "Requests that waited too long in an origin's queue.")
        case .tunnels: ("tunnels_total", "Connections upgraded to a tunnel.")
        case .tunnelsClosed: ("tunnels_closed_total", "Tunnels that have ended.")
        case .uploadBytes: ("request_body_bytes_total", "Bytes of request content relayed or held.")
        case .downloadBytes: ("response_body_bytes_total", "Bytes of response content relayed.")
        case .bodiesHeld: ("bodies_held_total", "Bodies held until they were judged.")
        case .bodiesSpilled: ("bodies_spilled_total", "Held bodies that went to a temporary file.")
        case .digestMismatches:
            ("digest_mismatches_total", "Bodies whose digest was not the declared one.")
        case .verifications: ("verifications_total", "Signatures verified.")
        case .commitWaits:
            ("commit_waits_total", "Requests that waited until their counter was on disk.")
        case .deviceChecks:
            ("device_checks_total", "Requests that waited for what Apple says of their device.")
        case .deviceFieldsIgnored:
            (
                "device_fields_ignored_total",
                "App-Attest-Device-Bits of origins that changed nothing."
            )
        case .challengesIssued: ("challenges_issued_total", "Challenges issued.")
        case .challengesForeign:
            (
                "challenges_foreign_total",
                "Challenges that a device signed under a secret unknown to this gateway of a fleet."
            )
        case .enrolments: ("enrolments_total", "Keys enrolled.")
        case .enrolmentsThrottled:
            ("enrolments_throttled_total", "Enrolments turned away for now, over the rate.")
        case .enrolmentsNotYet:
            ("enrolments_not_yet_total", "Enrolments turned away for now, outside the ramp.")
        case .enrolmentChallengesAdmitted:
            ("enrolment_challenges_admitted_total", "Enrolment challenges handed out.")
        case .sessionsOpened: ("sessions_opened_total", "Sessions opened.")
        case .sessionsRefused:
            ("sessions_refused_total", "Requests to open a session that were refused.")
        case .sessionsEvicted:
            ("sessions_evicted_total", "Sessions that ended early to make room for another.")
        case .ratesEvicted:
            (
                "rates_evicted_total",
                "Devices whose use of a rate was forgotten to make room for another."
            )
        case .sessionPasses: ("session_passes_total", "Requests that passed by a session.")
        case .tokenPasses:
            ("token_passes_total", "Requests that passed by a token in the place of a signature.")
        case .sessionsForeign:
            ("sessions_foreign_total", "Requests with a session that this process has not opened.")
        case .riskMarks:
            (
                "risk_marks_total",
                "Requests that passed although a rule's risk limit speaks against them."
            )
        case .integrityMarks:
            (
                "integrity_marks_total",
                "Requests and enrolments that passed without what `integrity` asks for."
            )
        case .addressConnectionsRefused:
            (
                "address_connections_refused_total",
                "Connections and HTTP/2 requests over the limit of their address."
            )
        case .addressRequestsRefused:
            ("address_requests_refused_total", "Requests over the rate of their address.")
        case .addressVerificationsRefused:
            (
                "address_verifications_refused_total",
                "Proofs not looked at after failures of their address."
            )
        case .addressTableFull:
            (
                "address_table_full_total",
                "Connections and requests of addresses that found no room."
            )
        case .refusalLinesLeftOut:
            (
                "access_log_refusals_left_out_total",
                "Refusals without a line: more than log.address_refusals."
            )
        }
    }
}

/// A distribution of the event loops. The raw value is its place in a tally.
package enum Distribution: Int, CaseIterable, Sendable {
    case verification
    case commitWait
    case deviceCheck
    case tokenCheck
    case originQueue
    case firstByte
    case request
    case loopIteration
    case iterationEvents

    /// The metric's name without its prefix.
    package var name: String { row.name }
    /// What it measures, in one line.
    package var help: String { row.help }

    private var row: (name: String, help: String) {
        switch self {
        case .verification: ("verification_seconds", "Time to decode and verify an assertion.")
        case .commitWait:
            ("commit_wait_seconds", "Time a request waited until its counter was on disk.")
        case .deviceCheck:
            ("device_check_seconds", "Time a request waited for what Apple says of its device.")
        case .tokenCheck:
            (
                "token_check_seconds",
                "Time until a token of a proof was checked, calls and commits included."
            )
        case .originQueue:
            ("origin_queue_seconds", "Time a request waited for a connection to a server.")
        case .firstByte:
            (
                "origin_first_byte_seconds",
                "Time from the request's last head byte to the response's first."
            )
        case .request:
            ("request_seconds", "Time from a request's complete head to the end of its response.")
        case .loopIteration:
            (
                "event_loop_iteration_seconds",
                "Time an event loop worked in one go; what gets ready meanwhile waits for it."
            )
        case .iterationEvents:
            ("event_loop_iteration_events", "Ready sockets that an event loop served in one go.")
        }
    }

    /// The value of one unit of the kept numbers in the metric's unit: durations are kept in
    /// nanoseconds.
    package var unit: Double {
        switch self {
        case .verification, .commitWait, .deviceCheck, .tokenCheck, .originQueue, .firstByte,
            .request, .loopIteration:
            1e-9
        case .iterationEvents: 1
        }
    }
}
