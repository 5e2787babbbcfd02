// Requests on their way through an event loop.
//
//   ProxyLoop           the proxy on one event loop: pools, judge, counters, scratch memory
//   Exchange            one request: takes the steps that its machine, Flow, says
//   ExchangeState       what is known of it; the steps read and fill it, and don't know each other
//   Admission           from the head to the rule
//   Judging             from the rule to the verdict, and again after a wait
//   Querying            what it asks of other parties: Apple, and those that know its tokens
//   Flow                from the verdict to the decision, and what follows
//   OriginHead          the head that the server gets instead of the client's
//   Relay, OriginSide   the request to a server; its connection there
//   Answering           what the client gets beside an origin's response
//   Audit, LogLine      counts, memory of refusals, spans; the line of the log
//   CheckCall           a call that asks about a request, and is that request's client
//   ServiceCall         what it asks of a service of the gateway's own
//   CommitQueue         requests that wait for the store
//   HeldBody            content that waits to be judged, counted in a HeldLedger of all event loops
//   Tunnel              two streams after a 101
//   SnapshotCollector   gives operators' pages what they show, by one gathering at a time
//   ProbeResponder      tells strangers whether it is ready, at the price of one a second
//
// Clients, the client's side of requests:
//
//   Entrance          what a listener's connections speak; makes a client's connection of each
//   ClientStream      what a request asks of its client, whatever the protocol
//   ClientStreamOwner the request; what a stream tells it
//   HTTP1Connection   an HTTP/1 connection: finds heads, keeps order, lingers, closes
//   HTTP1Stream       one request on it and its response
//   HTTP2Connection   the same for HTTP/2, with an HTTP2Stream for each request
//   ProxiedConnection a proxy's connection until its PROXY header has been read
//
// Origins, the origin's side of requests:
//
//   OriginPool          the servers of an origin on one event loop; gets connections to them
//   Balancer            chooses among them: in turn, by load, or by a hash
//   OriginDial          a connect to one server after another until one takes it
//   OriginServer        one server on one event loop, and its idle connections
//   ServerState         what all event loops know of a server, and how much it has to do
//   ServerHealth        whether a server is passed over after a connect or a response that failed
//   OriginRegistry      the states of origins and servers, which outlive reloads
//   OriginWatch         checks servers, and says when none of an origin is left
//   OriginStream        a request at a server, whatever its protocol: sends it, reads the response
//   OriginStreamOwner   the request; what a stream tells it
//   OriginConnection    a connection to a server: its connect, and its handshake
//   HTTP1OriginStream   one that carries a request after the other, and is the stream of each
//   HTTP2OriginStream   a stream of an HTTP2OriginConnection, which carries many at once
//   SharedConnections   the HTTP/2 connections of an event loop to a server, and who waits for one
//   HTTPClient          requests of the gateway's own
//
// What is answered without an origin is a service (see Services). The operators' listener is a
// ProxyLoop of its own on which every path is a service.
//
// Everything on an event loop is confined to the event loop's queue. What is shared between event
// loops is immutable (`ProxySettings`) or made for it (the key table, the challenge issuer,
// `ServerState`).
//
// Memory. A connection owns bytes only while it holds a partial head or output that a peer has not
// taken yet. Reading stops on one side while bytes wait on the other, so at most one read waits.
// Content that a rule holds comes on top, within the limits of held memory and disk.
//
// Invariants:
//   * The rule is chosen once, from the view of the path that is forwarded.
//   * The origin gets the last byte of a request only after all demands of the rule held.
//   * A request has one verdict; a retry repeats only the origin's leg.
//   * A request that is answered locally is read to its end, or its connection closes.
//   * Flow decides what follows an event; the code here never does.
