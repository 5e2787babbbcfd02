// The client's side of requests.
//
//   ClientStream      what a request asks of its client, whatever the protocol
//   ClientStreamOwner the request; what a stream tells it
//   ClientHost        whose connections they are: limits, clock, who serves a request
//   HTTP1Connection   an HTTP/1 connection: finds heads, keeps order, lingers, closes
//   ProxiedConnection a proxy's connection until its PROXY header has been read
//   HTTP1Stream       one request on an HTTP/1 connection and its response
//
// Everything lives on one lane. A connection owns bytes only while it holds a partial head, or what
// followed a message, or what its client was too slow to take.
