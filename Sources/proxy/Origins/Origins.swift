// The origins' side of requests.
//
//   OriginStream        a connection to a server: sends a request, reads its response
//   OriginStreamOwner   who sends it; what a stream tells
//   OriginServer        one server on one lane, and its idle connections
//   OriginPool          the servers of an origin on one lane, in turn
//
// Everything lives on one lane.
