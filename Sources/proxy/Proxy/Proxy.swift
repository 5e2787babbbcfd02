// Requests on their way through a lane.
//
//   ProxyLane           what the proxy owns on one lane: pools, judge, counters, scratch memory
//   Exchange            one request: performs what its machine, Flow, says
//   OriginSide          its connection to a server, and OriginHead what the server gets first
//   ServiceCall         what it asks of a service of the gateway's own
//   CommitQueue         requests that wait for the store
//   HeldBody            content that waits to be judged, counted in a HeldLedger of all lanes
//   Tunnel              two streams after a 101
//   SnapshotDesk        gives operators' pages what they show, by one gathering at a time
//   ProbeDesk           tells strangers whether it is ready, at the price of one a second
//
// What is answered without an origin is a service (see Services). The operators' listener is a
// ProxyLane of its own on which every path is a service.
//
// The client's side of a request is a stream of ClientStreams, the server's side one of Origins.
//
// Everything on a lane is confined to the lane's queue. What is shared between lanes is immutable
// (`ProxySettings`) or made for it (the key table, the challenge issuer).
//
// Memory. A connection owns bytes only while it holds a partial head or what a peer was too slow
// to take. Reading stops on one side while bytes wait on the other, so what waits is at most one
// read. Content that a rule holds comes on top, within the limits of held memory and disk.
//
// Invariants:
//   * The rule is chosen once, from the view of the path that is forwarded.
//   * The origin sees the last byte of a request only after everything the rule asks of it held.
//   * A verdict is made once for a request; a retry repeats the origin's leg alone.
//   * A request that is answered locally is read to its end, or its connection closes.
//   * What follows an event is decided by Flow, never here.
