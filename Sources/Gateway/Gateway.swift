// The process around the parts: start, reload, drain.
//
//   GatewayServer            holds everything together; made from a valid configuration
//   LaneUnit                 one lane with its proxy and listeners
//   ListenerSet              bound sockets; several lanes share an address
//   ProxySettings+Loading    the configuration as the proxy takes it, names resolved
//   LogWriter                the access log's lines on their way to a file or standard output
//   SignalWatch              TERM and INT drain, HUP reloads
//
// Order of a start: configuration, descriptors, store (opened, checked, locked), certificates,
// sockets. Whatever fails names itself and the way out, and nothing has been opened to clients by
// then.
//
// A reload reads the files again. If anything is wrong the running configuration stays, the problem
// is logged and shown by the admin listener. Listeners, lanes, store and admin address are taken at
// the start only; a reload that would change them is refused.
