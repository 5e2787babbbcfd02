// Sends requests at a constant rate, from devices made of software, and expects a verdict for each.
//
//   DeviceFleet        devices that come from one seed, and the first counter of the next run
//   FleetPairing       a fleet, and the configuration of the gateway that it sends to
//   RequestDemand      the demands of the gateway's own configuration on the request
//   RequestTemplate    the bytes of a request without its proof, and the hashed part of them
//   Mix, Sending       the kind of the n-th request, its parts, and its expected answer
//   TokenMint          the tokens of Play Integrity that phones show
//   SessionStock       the sessions of an event loop's devices, which sign requests
//   Pacing             when the n-th request is due: at one rate, in stages (StageSchedule), or as
//                      answers come
//   LoadLoop           one event loop: connections, devices, challenges; sends, and judges answers
//   ConnectionPool     an event loop's connections to the gateway, of HTTP/1.1 or HTTP/2
//   LoadExchange       a place for one request at a time: a connection, or a stream of one
//   Measurements       counts and histograms of an event loop, added up at the end
//   Campaign           prepares, starts the event loops, reports progress, ends
//   Progress           what is shown while it runs: a live line with bars, or a line now and then
//   Summary            the result as text, as JSON, and as a percentile distribution
//   HTMLReport         the result as a page for a browser
//   RunLimits          the limits above which a run, or a stage, has failed
//   FleetEnrolment     brings the devices into a gateway through its endpoints
//
// The requests can't disagree with the gateway: the rule comes from the gateway's configuration,
// `RequestBinding` writes the signed lines, and the reasons are those of `Verification`.
//
// Open loop: the n-th request is due at n / rate, whatever happened to the others. When no
// connection, device or challenge is free, it waits. Its latency counts from the moment when it was
// due, so a stall shows in the latency of all requests that it delayed. Closed loop: each
// connection sends again after its answer. A stall then hides the requests that would have come
// meanwhile, so this mode measures capacity and not latency.
//
// A key's counter must grow in the order in which the gateway sees its assertions. So under a
// strict rule a device has at most one request under way. Devices take turns, and busy ones are
// skipped.
//
// Only admitted requests are replayed: the gateway would rightly admit a copy that overtakes its
// original.

/// Why no request can be sent, in a sentence, with what to do.
package struct LoadError: Error, Sendable, CustomStringConvertible {
    /// The sentence.
    package let description: String

    package init(_ description: String) { self.description = description }
}
