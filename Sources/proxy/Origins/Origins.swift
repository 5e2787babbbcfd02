// The origins' side of requests.
//
//   OriginPool          the servers of an origin on one lane, in turn; gets connections to them
//   OriginDial          a connect to one server after another until one takes it
//   OriginServer        one server on one lane, and its idle connections
//   ServerHealth        whether a server is passed over; shared by all lanes
//   OriginStream        a connection to a server: sends a request, reads its response
//   OriginStreamOwner   who sends it; what a stream tells
//   HTTPClient          requests of the gateway's own
//
// Everything lives on one lane, save for ServerHealth.
