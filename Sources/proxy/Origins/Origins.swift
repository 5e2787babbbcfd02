// The origins' side of requests.
//
//   OriginPool          the servers of an origin on one lane; gets connections to them
//   Balancer            chooses among them: in turn, by load, or by a hash
//   OriginDial          a connect to one server after another until one takes it
//   OriginPreface       what a server learns of the client at the beginning of a connection
//   OriginServer        one server on one lane, and its idle connections
//   ServerState         what all lanes know of a server, and how much it has to do
//   ServerHealth        whether a server is passed over after a connect or a response that failed
//   Ejection            when one is passed over whose requests fail
//   OriginBook          the states of origins and servers, which outlive reloads
//   OriginWatch         checks servers, and says when none of an origin is left
//   OriginStream        a connection to a server: sends a request, reads its response
//   OriginStreamOwner   who sends it; what a stream tells
//   HTTPClient          requests of the gateway's own
//
// Everything lives on one lane, save for ServerState and what it holds.
