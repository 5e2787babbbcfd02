// The operators' side: metrics, status and probes over HTTP/1.1, on a lane of its own.
//
//   /metrics   all that is counted, in the text format that Prometheus reads (0.0.4)
//   /status    the same for people and scripts, as JSON
//   /healthz   200 as long as the process runs; asks nobody
//   /readyz    200, or 503 with the reasons not to send traffic here
//
// A request's life: `RequestReader` finds and reads its head, strictly, by HTTPWire; `AdminRequest`
// is what is left of it; `AdminServer` asks the `AdminSource` for a snapshot, one gathering at a
// time (`Gathering`); `AdminSnapshot` is rendered; `AdminConnection` sends it piece by piece. One
// snapshot feeds all pages, so that they can't disagree.
//
// A source that takes too long costs a 503 and nothing else: lanes that are busy are a fact that
// operators must see, so no page waits for them without end, and who asks again meanwhile adds
// nothing to what the lanes have to do.
//
// There is nothing to change here: GET and HEAD only, and no request content. Who may connect is
// decided by the address that is listened on; there is neither TLS nor a password.
