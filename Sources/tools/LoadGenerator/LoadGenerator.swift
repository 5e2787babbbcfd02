// Requests at a constant rate, from devices made of software, each with a verdict that is expected
// of it.
//
//   Fleet              devices out of one seed, and the counter at which the next run begins
//   RequestDemand      what the gateway's own configuration asks of the request that is sent
//   RequestTemplate    the bytes of a request but for its proof, and what is hashed
//   Mix, Sending       which kind the n-th request is, what it is made of, what has to come of it
//   SessionStock       the sessions of an event loop's devices, and what is signed with them
//   Pacing             when the n-th request is due
//   LoadLoop           one event loop: connections, devices, challenges; sends and judges the answers
//   LoadConnection     a client's connection: one request at a time
//   Measurements       counts and histograms of an event loop, added up at the end
//   Campaign           prepares, starts the event loops, reports progress, ends
//   Summary            the result as text, as JSON, and as a percentile distribution
//   EnrolmentRun       brings the devices into a gateway through its endpoints
//
// What is sent can't disagree with the gateway: the rule is read from the gateway's configuration,
// what is signed is written by `RequestBinding`, reasons are `Verification`'s.
//
// Open loop: the n-th request is due at n / rate, whatever became of the others. When no
// connection, device or challenge is free it waits, and its latency counts from the moment at which
// it was due, so that a stall shows in the latency of all requests that it held up, not of one.
// Closed loop: each connection sends when it was answered; a stall then hides the requests that
// would have come meanwhile, which is why it measures capacity and not latency.
//
// A key's counter has to grow in the order in which the gateway sees its assertions. Under a strict
// rule a device has therefore one request under way at most; devices take turns, and busy ones are
// passed over.
//
// Only what was admitted is replayed: a copy that overtakes its original would be admitted in its
// place, rightly.
